"""The exceptions of the package."""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any


class CupelWarning(UserWarning):
    """A setting without effect, or a guess such as an estimated token count."""


def warn(text: str) -> None:
    """Warns with a text of the command, at the line outside of this package that made the call."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "cupel":
        level, frame = level + 1, frame.f_back
    warnings.warn(keywords(text), CupelWarning, stacklevel=level)


class CupelError(Exception):
    """The base of all errors of this package. Its text is the command's.

    Attributes:
        message: What is wrong.
        path: The value at fault, such as ``items[3].tokens``, or None.
        details: What the message sums up, one line each.
        help: How to fix it, or None.
        code: The name of the engine's error, such as ``"PinnedExceedsBudget"``, or None.
        cause: The engine's own text, if a constructor refused a value, or None.
        exit_code: The exit status of the command for this error.
        file, line, column: The place in a file, if one was read, or None.
    """

    cause: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        details: tuple[str, ...] = (),
        help: str | None = None,
        code: str | None = None,
        exit_code: int = 2,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.details = details
        self.help = help
        self.code = code
        self.exit_code = exit_code

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        if self.file:
            at = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
            place = f"{at}: {place}"
        lines = [place + self.message, *(f"  {detail}" for detail in self.details)]
        if self.help:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, self.__dict__.copy())


class InvalidInputError(CupelError, ValueError):
    """An argument is invalid."""


class OverBudgetError(CupelError):
    """The mandatory messages or pinned items do not fit the budget."""


class InternalError(CupelError):
    """An internal error; please report it."""


def _restore(kind: type[CupelError], message: str, state: dict[str, Any]) -> CupelError:
    error = kind(message)
    error.__dict__.update(state)
    return error


_KINDS: dict[int, type[CupelError]] = {1: OverBudgetError, 2: InvalidInputError, 3: InternalError}


_NAMES = {"from": "start", "to": "stop", "no-keep-task": "keep_task"}
"""The arguments whose names are not those of the command's options."""

_PHRASES = {
    "`cupel policy list`": "`cupel.presets()`",
    "the strategies in cupel::config::registry": "built-in strategies",
}
"""Terms of the command and the library, and what they are in Python."""

# An option at the beginning, which is the path of the fault: `--budget: invalid budget ...`.
_PLACE = re.compile(r"--([a-z][a-z-]*): ")
# An option in the words of clap: `'--step <TOKENS>'`.
_QUOTED = re.compile(r"'--([a-z][a-z-]*)(?: <[^>]*>)?'")
_POLICIES = re.compile(r"--policy ([\w-]+) --policy ([\w-]+)")
# An option with its value.
_OPTION = re.compile(
    r"--([a-z][a-z-]*)(?: (?!(?:and|applies|apply|has|is|keeps|needs|or)\b)([\w/][^\s,;:]*))?"
)
# What the command adds about its own help.
_USAGE = re.compile(r"^tip: |(?:Usage: .*|For more information.*)$", re.DOTALL)


def _name(match: re.Match[str]) -> str:
    return _NAMES.get(match[1], match[1].replace("-", "_"))


def _keyword(match: re.Match[str]) -> str:
    name, value = _name(match), match[2] or ""
    is_number = not value or value.isdecimal()
    return f"{name}={value}" if is_number else f'{name}="{value}"'


def keywords(text: str) -> str:
    """Returns a text with the command's options as keyword arguments, such as ``shape=``."""
    text = _USAGE.sub("", text).strip()
    for term, replacement in _PHRASES.items():
        text = text.replace(term, replacement)
    text = _POLICIES.sub(r'policies=["\1", "\2"]', text)
    return _OPTION.sub(_keyword, _QUOTED.sub(_name, text))


def from_problem(problem: dict[str, Any], *, code: str | None, root: str) -> CupelError:
    """Returns the exception for a problem of the command.

    ``root`` is the name of the argument that the problem's path is in, unless it is in a file.
    """
    path, message = problem.get("path") or "", problem["message"]
    # The command names the input after its argument.
    is_in_file = problem.get("file") not in (None, root)
    if is_in_file:
        root = ""
    if place := _PLACE.match(message):
        path, root, message = _name(place), "", message[place.end() :]
    is_absolute = not root or path.startswith(root)
    dot = "" if path.startswith("[") else "."
    joined = path if is_absolute else f"{root}{dot}{path}"
    exit_code = problem["exit_code"]
    error = _KINDS.get(exit_code, CupelError)(
        keywords(message),
        path=joined if path else None,
        details=tuple(problem.get("details") or ()),
        help=keywords(problem.get("help") or "") or None,
        code=code,
        exit_code=exit_code,
    )
    error.cause = problem.get("cause")
    if is_in_file:
        error.file, error.line, error.column = map(problem.get, ("file", "line", "column"))
    return error
