"""`cupel.haystack` in pipelines and agents of Haystack with an offline model."""

from __future__ import annotations

import asyncio
import copy
import os
import re
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import pytest
from haystack import Document, Pipeline, component
from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import (
    ChatMessage,
    ChatRole,
    FileContent,
    ImageContent,
    TextContent,
    ToolCall,
)
from haystack.tools import Tool

import adapters
import cupel
import long_chat
from cupel.haystack import CupelChatGenerator

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


@component
class Offline:
    """Calls the tool once per question, then answers; remembers the messages that it was sent."""

    model = "gpt-4o"

    def __init__(self) -> None:
        self.seen: list[list[ChatMessage]] = []

    @component.output_types(replies=list[ChatMessage])
    def run(
        self, messages: list[ChatMessage], tools: Any = None, generation_kwargs: Any = None
    ) -> dict[str, Any]:
        self.seen.append(messages)
        if tools and messages[-1].role == "user":
            call = ToolCall("weather", {"city": "Bonn"}, id="new")
            return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}
        return {"replies": [ChatMessage.from_assistant("It is sunny.")]}


def weather_tool(description: str = "Returns the weather of a city.") -> Tool:
    return Tool("weather", description, SCHEMA, function=lambda city: "sunny")


def call(id: str | None, city: str, result: str) -> list[ChatMessage]:
    made = ToolCall("weather", {"city": city}, id=id)
    return [
        ChatMessage.from_assistant(tool_calls=[made]),
        ChatMessage.from_tool(result, origin=made),
    ]


def history(ids: tuple[str | None, str | None] = ("c0", "c1")) -> list[ChatMessage]:
    return [
        ChatMessage.from_user("first " * 60),
        *call(ids[0], "Rome", adapters.LONG),
        ChatMessage.from_assistant("It is cloudy. " * 20),
        ChatMessage.from_user("And in Oslo?"),
        *call(ids[1], "Oslo", "snow"),
        ChatMessage.from_assistant("It snows."),
    ]


QUESTION = ChatMessage.from_user("And in Bonn?")


def run(
    is_async: bool = False,
    messages: list[ChatMessage] | None = None,
    tools: list[Tool] | None = None,
    system: str = "Be brief.",
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """Runs an agent, and returns the model and what the agent returned."""
    model = Offline()
    agent = Agent(
        chat_generator=CupelChatGenerator(model, **options),
        tools=[weather_tool()] if tools is None else tools,
        system_prompt=system,
    )
    chat = [*history(), QUESTION] if messages is None else messages
    if is_async:
        return model, asyncio.run(agent.run_async(messages=chat))
    return model, agent.run(messages=chat)


def roles(messages: list[ChatMessage]) -> list[str]:
    return [message.role.value for message in messages]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_gets_the_fitted_messages_and_the_agent_keeps_all(is_async: bool) -> None:
    before = [*history(), QUESTION]
    unchanged = copy.deepcopy(before)
    model, result = run(is_async, before, budget=160, **adapters.NEWEST)
    step = ["assistant", "tool"]
    window = ["system", "user", *step, "assistant", "user"]
    assert [roles(messages) for messages in model.seen] == [window, window + step]
    assert all(a is b for a, b in zip(model.seen[0][1:], before[4:], strict=True))
    assert result["messages"][1 : len(before) + 1] == before == unchanged
    assert result["last_message"].text == "It is sunny."


@pytest.mark.parametrize("is_async", [False, True])
def test_shortened_messages_are_copies(is_async: bool) -> None:
    before = [*history(), QUESTION]
    unchanged = copy.deepcopy(before)
    model, _ = run(is_async, before, budget=500, keep_task=False)
    results = [m.tool_call_result for m in model.seen[0] if m.tool_call_result]
    assert [result.origin.id for result in results] == ["c0", "c1"]
    assert len(results[0].result) < len(adapters.LONG)
    assert results[1] is before[6].tool_call_result
    assert before == unchanged


def test_the_system_prompt_and_the_tools_are_counted() -> None:
    def smallest(**options: Any) -> int:
        return adapters.smallest_budget(
            lambda budget: run(messages=[QUESTION], budget=budget, **options)
        )

    plain = smallest()
    assert smallest(system="Be brief." + " Always." * 20) - plain == 40
    assert smallest(tools=[weather_tool("Returns it." + " Always." * 20)]) > plain + 20


def test_tools_of_the_generator_are_counted() -> None:
    model = Offline()
    seen: list[cupel.Fitted[Any]] = []
    generator = CupelChatGenerator(model, budget="8k", on_fit=seen.append)
    generator.run([QUESTION])
    model.tools = [weather_tool()]
    generator.run([QUESTION])
    assert seen[1].tokens_before > seen[0].tokens_before + 20


@pytest.mark.parametrize("is_async", [False, True])
def test_mandatory_messages_over_the_budget_raise(is_async: bool) -> None:
    with pytest.raises(cupel.OverBudgetError):
        run(is_async, budget=20)


@pytest.mark.parametrize("ids", [("c0", "c1"), (None, None)])
@pytest.mark.parametrize("budget", range(200, 900, 50))
def test_calls_stay_with_their_results(ids: Any, budget: int) -> None:
    model, _ = run(messages=[*history(ids), QUESTION], budget=budget, keep_task=False)
    for messages in model.seen:
        calls = [call for m in messages for call in m.tool_calls]
        assert calls == [result.origin for m in messages for result in m.tool_call_results]


def test_images_files_and_lists_of_results_are_read() -> None:
    image = ImageContent(PIXEL, mime_type="image/png")
    made = ToolCall("weather", {"city": "Rome"}, id="c0")
    parts = [TextContent(adapters.LONG), image]
    before = [
        ChatMessage.from_user(content_parts=["Look:", image, FileContent(PIXEL, "image/png")]),
        ChatMessage.from_assistant("I look.", tool_calls=[made], reasoning="Clouds?"),
        ChatMessage.from_tool(parts, origin=made),
        ChatMessage.from_assistant("Nice."),
        QUESTION,
    ]
    model, _ = run(messages=before, budget=8000)
    assert all(a is b for a, b in zip(model.seen[0][1:], before, strict=True))
    seen: list[cupel.Fitted[Any]] = []
    generator = CupelChatGenerator(Offline(), budget="8k", max_result=60, on_fit=seen.append)
    generator.run(before)
    [short] = seen[0].shortened
    assert short["index"] == 2
    # An image of one pixel has 85 tokens of gpt-4o at least.
    assert seen[0].tokens_before > 2 * 85
    model = Offline()
    CupelChatGenerator(model, budget="8k", max_result=60).run(before)
    text, same = model.seen[0][2].tool_call_result.result
    assert len(text.text) < len(adapters.LONG) and same is image
    assert model.seen[0][2].tool_call_result.origin is made


def test_a_marker_is_a_message() -> None:
    model, _ = run(budget=260, shorten="off", marker="[{n} left out]", keep_task=False)
    texts = [message.text or "" for message in model.seen[0]]
    assert any(re.search(r"\[\d left out\]", text) for text in texts)
    assert all(isinstance(message, ChatMessage) for message in model.seen[0])


def test_a_pipeline_with_it_can_be_stored() -> None:
    pipeline = Pipeline()
    inner = MockChatGenerator("It is sunny.", model="gpt-4o")
    generator = CupelChatGenerator(inner, budget="4k", policy="newest", on_fit=print_window)
    pipeline.add_component("model", generator)
    restored = Pipeline.loads(pipeline.dumps(), allowed_modules=["cupel.haystack", __name__])
    result = restored.run({"model": {"messages": [QUESTION]}})
    assert result["model"]["replies"][0].text == "It is sunny."
    assert restored.to_dict() == pipeline.to_dict()
    fields = restored.to_dict()["components"]["model"]["init_parameters"]
    assert (fields["budget"], fields["policy"]) == ("4k", "newest")
    assert PRINTED and PRINTED[-1].kept == [0]


PRINTED: list[cupel.Fitted[Any]] = []


def print_window(fitted: cupel.Fitted[Any]) -> None:
    """A function that Haystack can store: it has a name in a module."""
    PRINTED.append(fitted)


def test_methods_of_the_other_generator_are_called() -> None:
    class Closing(Offline):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    model = Closing()
    generator = CupelChatGenerator(model, budget="8k")
    generator.close()
    assert model.closed == 1
    assert not hasattr(generator, "warm_up")
    assert copy.copy(generator).chat_generator is model
    assert generator.run("Hello!")["replies"][0].text == "It is sunny."


@pytest.mark.parametrize("is_async", [False, True])
def test_the_callback_gets_each_window(is_async: bool) -> None:
    seen: list[cupel.Fitted[Any]] = []
    model, _ = run(is_async, budget=500, keep_task=False, on_fit=seen.append)
    assert [len(fitted.messages) for fitted in seen] == [len(window) for window in model.seen]
    assert all(fitted.shortened and fitted.tokens_after <= 500 for fitted in seen)


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(lambda **options: CupelChatGenerator(Offline(), **options))


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Offline()
    generator = CupelChatGenerator(model, budget=long_chat.BUDGET)
    reuse = long_chat.Reuse()
    for messages in long_chat.requests():
        generator.run([ChatMessage.from_openai_dict_format(message) for message in messages])
        reuse.add(long_chat.as_json([message.to_dict() for message in model.seen[-1]]))
    reuse.check("Haystack, CupelChatGenerator")


def test_select_takes_documents() -> None:
    documents = [Document(content=f"text {n}", score=score) for n, score in enumerate((3, 9, 5))]
    selection = cupel.select(documents, 6, counter=lambda text: 3)
    assert {id(it) for it in selection.items} == {id(documents[1]), id(documents[2])}


def test_the_example_of_the_documentation_runs() -> None:
    old = [*history(), ChatMessage.from_assistant(adapters.OLD)]
    model = Offline()
    names = {"model": model, "weather": weather_tool(), "history": old}
    result = adapters.run_example("Haystack", names)["result"]
    assert result["last_message"].text == "It is sunny."
    texts = [message.text for message in model.seen[0]]
    assert texts[-1] == adapters.QUESTION and adapters.OLD not in texts
    assert model.seen[0][0].role == ChatRole.SYSTEM


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("haystack")


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.haystack")
