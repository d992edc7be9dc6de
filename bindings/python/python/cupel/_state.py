"""State files: what a session remembers between calls of ``fit``."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil

from cupel._cupel import Session
from cupel._errors import InvalidInputError


def read_state(path: str | os.PathLike[str]) -> Session:
    """Continues the session of a file; one that does not exist is a new session."""
    name = _name(path)
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return Session()
    except (OSError, UnicodeDecodeError) as error:
        raise _failed("read", name, error) from error
    try:
        return Session(text)
    except InvalidInputError as error:
        raise InvalidInputError(error.message, file=name) from None


def write_state(path: str | os.PathLike[str], session: Session) -> None:
    """Replaces a file as a whole: readers see the old or the new text, also after a crash.

    The target of a link is replaced, and a file keeps its permissions.
    """
    name = _name(path)
    target = os.path.realpath(name)
    # Beside the target: a file can be renamed within one file system only.
    new = f"{target}.{secrets.token_hex(4)}.new"
    try:
        # The mask of the process decides on the permissions of a new file.
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(session.state() + "\n")
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(target, new)
            os.replace(new, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
    except OSError as error:
        raise _failed("write", name, error) from error


def _name(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        message, help = "a lone surrogate is not text", 'decode bytes with errors="replace"'
        raise InvalidInputError(message, path="state", help=help) from None
    return name


def _failed(doing: str, name: str, error: OSError | UnicodeDecodeError) -> InvalidInputError:
    problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InvalidInputError(f"cannot {doing} {name}: {problem}", path="state")
