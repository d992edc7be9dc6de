"""Fits the messages that the agents of CrewAI send to their LLM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple, Unpack

from crewai import LLM, BaseLLM
from crewai.llms.base_llm import call_stop_override, call_stream_override
from crewai.utilities.i18n import I18N_DEFAULT
from pydantic import PrivateAttr

from cupel._adapter import Adapter, OnFit
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._rebuild import fixed, positions
from cupel._types import BudgetLike, FitOptions

__all__ = ["CupelLLM"]


class CupelLLM(BaseLLM):
    """An LLM that fits the messages into a budget before it calls another one.

    Takes the options of `cupel.fit`. It stands for the other LLM in agents, which keep every
    message. The tools are counted. Kept messages are the agent's own objects; shortened messages
    are copies. CrewAI does not summarize the messages on its own: a window always fits. `on_fit`
    is called with each `cupel.Fitted`.

    >>> class Offline(BaseLLM):
    ...     def call(self, messages, *args, **options):
    ...         return "Hello!"
    >>> llm = CupelLLM(Offline(model="gpt-4o"), budget="8k")
    >>> llm.call([{"role": "user", "content": "Hi."}])
    'Hello!'
    """

    llm: BaseLLM
    _adapter: Adapter = PrivateAttr()

    def __init__(
        self,
        llm: BaseLLM | str,
        budget: BudgetLike | None = None,
        *,
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        adapter = Adapter("CupelLLM", budget, options, on_fit).check()
        inner: Any = LLM(model=llm) if isinstance(llm, str) else llm
        # An agent reads these fields. The key stays where it is.
        own = BaseLLM.model_fields.keys() - {"llm_type", "api_key"}
        fields: dict[str, Any] = {name: getattr(inner, name) for name in own}
        super().__init__(**fields, **{"llm": inner})
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        # Such as `supports_function_calling`, which an LLM may have or not.
        if name == "llm" or name.startswith("_"):
            return super().__getattr__(name)  # type: ignore[misc]
        return getattr(self.llm, name)

    def call(
        self,
        messages: str | list[Any],
        tools: list[dict[str, Any]] | None = None,
        *given: Any,
        **options: Any,
    ) -> Any:
        """Calls the other LLM with the messages that fit."""
        window, fitted = self._fit(_chat(messages), tools)
        self._adapter.report(fitted)
        with self._overrides():
            return self.llm.call(window, tools, *given, **options)

    async def acall(
        self,
        messages: str | list[Any],
        tools: list[dict[str, Any]] | None = None,
        *given: Any,
        **options: Any,
    ) -> Any:
        """Calls the other LLM with the messages that fit."""
        chat = _chat(messages)
        window, fitted = await offload(chat, partial(self._fit, chat, tools))
        self._adapter.report(fitted)
        with self._overrides():
            return await self.llm.acall(window, tools, *given, **options)

    def is_context_window_overflowing_threshold(self, *given: Any, **options: Any) -> bool:
        """Returns `False`: messages that exceed the window of the model are not sent."""
        return False

    def _fit(
        self, messages: list[Any], tools: list[dict[str, Any]] | None
    ) -> tuple[list[Any], Fitted[Any]]:
        steps = _steps(messages)
        fitted = self._adapter.fit(
            [step.original for step in steps],
            shape="openai",
            model=self.llm.model,
            tools=tools or [],
        )
        window: list[Any] = []
        for index, message in positions(fitted):
            step = _Step(message, [message]) if index is None else steps[index]
            if message is step.original:
                window += step.source
            elif step.source == [step.original]:
                window.append(message)
            else:
                first, *others = step.source
                text = step.head + message["content"][0]["text"]
                window += [{**first, "content": text}, *others]
        return window, fitted

    @contextmanager
    def _overrides(self) -> Iterator[None]:
        """Hands the stop words and the streaming of this call to the other LLM."""
        stream = self._effective_stream()
        with ExitStack() as stack:
            if self.stop_sequences != self.llm.stop_sequences:
                stack.enter_context(call_stop_override(self.llm, self.stop_sequences))
            if stream is not None and stream != self.llm._effective_stream():
                stack.enter_context(call_stream_override(self.llm, stream))
            yield


def _chat(messages: str | list[Any]) -> list[Any]:
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else messages


class _Step(NamedTuple):
    """A message of Chat Completions, with the messages that it stands for."""

    original: Any
    source: list[Any]
    # The text of the first source before that of the original.
    head: str = ""


_OBSERVATION = "\nObservation: "
_REASONING = I18N_DEFAULT.slice("post_tool_reasoning")


def _steps(messages: list[Any]) -> list[_Step]:
    """Returns the messages of Chat Completions that messages stand for.

    If a model has no tool calls of its own, CrewAI writes the call and its result as one text, and
    asks the model to go on:

    ```text
    CrewAI              assistant: Action: read ... Observation: text    user: Analyze the ...
    Chat Completions    assistant, calls "1"    tool "1": text, Analyze the ...
    ```

    The text after `Observation` is what a tool returned: it is shortened before what people and the
    model said. The request to go on is not the user's last turn.
    """
    steps: list[_Step] = []
    for position, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        text = content if isinstance(content, str) else ""
        head, mark, result = text.partition(_OBSERVATION)
        if role == "assistant" and mark and "\nAction Input:" in head:
            function = {"name": "tool", "arguments": head}
            calls = [{"id": f"{position}", "type": "function", "function": function}]
            steps.append(_Step({"role": "assistant", "tool_calls": calls}, []))
            blocks = [{"type": "text", "text": result}]
            answer = {"role": "tool", "tool_call_id": f"{position}", "content": blocks}
            steps.append(_Step(answer, [message], head + mark))
        elif role == "user" and text == _REASONING and steps and steps[-1].head:
            steps[-1].original["content"].append(fixed(text))
            steps[-1].source.append(message)
        else:
            steps.append(_Step(message, [message]))
    return steps


def _of_other(name: str) -> Callable[..., Any]:
    """Returns a method that calls the one of the other LLM."""

    def call(self: CupelLLM, *given: Any, **options: Any) -> Any:
        return getattr(self.llm, name)(*given, **options)

    call.__name__, call.__doc__ = name, f"Calls `{name}` of the other LLM."
    return call


# What an agent asks its LLM, besides the calls.
for _name in (
    "_multimodal_formatter_name",
    "format_text_content",
    "get_context_window_size",
    "get_file_uploader",
    "get_input_tokens_count",
    "get_token_usage_summary",
    "is_tool_result_overflowing_threshold",
    "summarize_messages",
    "supports_multimodal",
    "supports_stop_words",
    "to_config_dict",
):
    setattr(CupelLLM, _name, _of_other(_name))
