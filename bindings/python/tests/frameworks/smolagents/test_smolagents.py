"""`cupel.smolagents` in agents of smolagents with an offline model."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from smolagents import ChatMessage, CodeAgent, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    get_clean_message_list,
    tool_role_conversions,
)

import adapters
import cupel
import long_chat
from cupel.smolagents import CupelModel


def calls_of(chosen: list[tuple[str, str, dict[str, Any]]]) -> ChatMessage:
    """Returns an answer with the given ids, names and arguments of tools."""
    calls = [
        ChatMessageToolCall(
            function=ChatMessageToolCallFunction(name=name, arguments=arguments),
            id=id,
            type="function",
        )
        for id, name, arguments in chosen
    ]
    return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)


class Offline(Model):
    """Calls a tool three times, then answers; remembers the messages that it was sent."""

    def __init__(self) -> None:
        super().__init__(model_id="gpt-4o")
        self.seen: list[list[ChatMessage]] = []

    def generate(self, messages: list[ChatMessage], **options: Any) -> ChatMessage:
        self.seen.append(messages)
        if len(self.seen) > 3:
            return calls_of([("end", "final_answer", {"answer": "It is sunny."})])
        return calls_of([(f"{len(self.seen)}", "weather", {"city": "Bonn"})])


@tool
def weather(city: str) -> str:
    """Returns the weather of a city.

    Args:
        city: The name of the city.
    """
    return adapters.OLD[:16000]


def text(role: MessageRole, *texts: str) -> ChatMessage:
    return ChatMessage(role, [{"type": "text", "text": text} for text in texts])


def step(number: int, result: str) -> list[ChatMessage]:
    """Returns the messages of one step of a memory."""
    return [
        text(MessageRole.ASSISTANT, "I look."),
        text(MessageRole.TOOL_CALL, f"Calling tools:\n[{{'id': '{number}'}}]"),
        text(MessageRole.TOOL_RESPONSE, f"Observation:\n{result}"),
    ]


def memory() -> list[ChatMessage]:
    return [
        text(MessageRole.SYSTEM, "Be brief."),
        text(MessageRole.USER, "New task:\n" + "first " * 60),
        *step(1, adapters.LONG),
        text(MessageRole.ASSISTANT, "It is cloudy. " * 20),
        text(MessageRole.USER, "New task:\nAnd in Oslo?"),
        *step(2, "snow"),
        text(MessageRole.USER, "New task:\nAnd in Bonn?"),
    ]


def window(messages: list[Any], budget: Any, **options: Any) -> list[Any]:
    model = Offline()
    CupelModel(model, budget, **options).generate(messages)
    # Every window is one that smolagents can send.
    get_clean_message_list(model.seen[0], tool_role_conversions)
    return model.seen[0]


def roles(messages: list[Any]) -> list[str]:
    return [message.role.value for message in messages]


def test_kept_messages_are_the_own_objects_and_shortened_ones_are_copies() -> None:
    before = memory()
    unchanged = copy.deepcopy(before)
    sent = window(before, 150, **adapters.NEWEST)
    assert all(a is b for a, b in zip(sent, [before[0], *before[6:]], strict=True))
    sent = window(before, 500, keep_task=False)
    [short] = [m for m in sent if not any(m is old for old in before)]
    assert short.role == MessageRole.TOOL_RESPONSE
    assert len(short.content[0]["text"]) < len(adapters.LONG)
    assert before == unchanged


@pytest.mark.parametrize("budget", range(200, 900, 50))
def test_calls_stay_with_their_results(budget: int) -> None:
    found = roles(window(memory(), budget, keep_task=False))
    assert found.count("tool-call") == found.count("tool-response") >= 1
    pairs = [found[i + 1] for i, role in enumerate(found) if role == "tool-call"]
    assert set(pairs) == {"tool-response"}


@pytest.mark.parametrize("budget", range(120, 900, 20))
def test_errors_and_images_stay_with_what_they_belong_to(budget: int) -> None:
    image = ChatMessage(MessageRole.USER, [{"type": "image", "image": b""}])
    call, result = step(3, adapters.LONG)[1:]
    error = text(MessageRole.TOOL_RESPONSE, "Error:\nunknown tool" + " really" * 50)
    unparsed = text(MessageRole.ASSISTANT, "I cannot" + " look" * 50)
    whole = [call, image, result, error]
    other = text(MessageRole.TOOL_RESPONSE, "Error:\nno call was found")
    before = [*memory(), *whole, unparsed, other, *step(4, "rain")]
    model = Offline()
    options: Any = {"policy": "newest", "shorten": "off", "keep_task": False}
    CupelModel(model, budget, **options).generate(before)
    kept = [any(it is old for it in model.seen[0]) for old in whole]
    assert len(set(kept)) == 1, kept
    kept = [any(it is old for it in model.seen[0]) for old in (unparsed, other)]
    assert len(set(kept)) == 1, kept


def test_a_result_without_a_call_is_a_text_of_the_user() -> None:
    before = [text(MessageRole.TOOL_RESPONSE, "Hello!"), text(MessageRole.USER, "Hi.")]
    assert window(before, "8k") == before


def test_messages_may_be_dicts() -> None:
    model = Offline()
    chat = [
        {"role": "user", "content": adapters.LONG},
        {"role": "assistant", "content": [{"type": "text", "text": adapters.LONG}]},
        {"role": "user", "content": "And now?"},
    ]
    CupelModel(model, 600).generate(chat)
    sent: Any = model.seen[0]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[2] is chat[2]
    assert len(sent[1]["content"][0]["text"]) < len(adapters.LONG)


def test_a_marker_is_a_message() -> None:
    sent = window(memory(), 260, shorten="off", marker="[{n} left out]", keep_task=False)
    assert "left out]" in str(sent)
    assert all(isinstance(message, ChatMessage) for message in sent)


def agent(model: Model, budget: Any = "8k", **options: Any) -> ToolCallingAgent:
    return ToolCallingAgent(
        tools=[weather], model=CupelModel(model, budget, **options), verbosity_level=0
    )


def test_the_model_gets_the_window_of_the_memory() -> None:
    seen: list[cupel.Fitted[Any]] = []
    model = Offline()
    made = agent(model, on_fit=seen.append)
    assert made.run(adapters.QUESTION) == "It is sunny."
    assert len(seen) == len(model.seen) == 4
    assert all(fitted.tokens_after <= 8000 for fitted in seen)
    assert seen[-1].tokens_before > 8000
    full = made.write_memory_to_messages()
    assert sum(len(str(message.content)) for message in full) > 3 * 16000
    assert roles(model.seen[-1])[:2] == ["system", "user"]


def test_tools_are_counted() -> None:
    def smallest(**options: Any) -> int:
        return adapters.smallest_budget(
            lambda budget: CupelModel(Offline(), budget).generate(memory(), **options)
        )

    assert smallest(tools_to_call_from=[weather]) > smallest() + 20


def test_mandatory_messages_over_the_budget_raise() -> None:
    with pytest.raises(cupel.OverBudgetError):
        CupelModel(Offline(), 20).generate(memory())
    # An agent wraps every error of its model, and shows its text.
    with pytest.raises(Exception, match="over the budget of 20"):
        agent(Offline(), 20).run(adapters.QUESTION)


class Streaming(Offline):
    """Streams the code that a CodeAgent runs."""

    def generate_stream(self, messages: list[ChatMessage], **options: Any) -> Iterator[Any]:
        self.seen.append(messages)
        yield ChatMessageStreamDelta("<code>final_answer('It is sunny.')")
        yield ChatMessageStreamDelta("</code>")


def test_a_stream_gets_the_window() -> None:
    seen: list[cupel.Fitted[Any]] = []
    model = CupelModel(Streaming(), "8k", on_fit=seen.append)
    made = CodeAgent(tools=[], model=model, stream_outputs=True, verbosity_level=0)
    assert made.run("Is it sunny?") == "It is sunny."
    assert len(seen) == 1
    assert not hasattr(CupelModel(Offline(), "8k"), "generate_stream")


def test_it_has_what_the_other_model_has() -> None:
    model = CupelModel(Offline(), "8k")
    assert model.model_id == "gpt-4o" and model.tool_name_key == "name"
    assert model.to_dict() == Offline().to_dict()
    assert copy.copy(model).model is model.model


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(lambda **options: CupelModel(Offline(), **options))


class Reviewer(Model):
    """Calls both tools, then answers, in each turn."""

    def __init__(self) -> None:
        super().__init__(model_id="gpt-4o")
        self.reuse = long_chat.Reuse()

    def generate(self, messages: list[ChatMessage], **options: Any) -> ChatMessage:
        turn, step = divmod(self.reuse.calls, 2)
        self.reuse.add(long_chat.as_json([message.dict() for message in messages]))
        if step:
            return calls_of(
                [(f"answer-{turn}", "final_answer", {"answer": long_chat.answer(turn)})]
            )
        return calls_of([long_chat.call(turn, name) for name in ("read", "search")])


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Reviewer()
    made = ToolCallingAgent(
        tools=[tool(function) for function in long_chat.tools()],
        model=CupelModel(model, long_chat.BUDGET),
        verbosity_level=0,
    )
    for turn in range(long_chat.TURNS):
        answer = made.run(long_chat.question(turn), reset=False)
        assert answer == long_chat.answer(turn)
    model.reuse.check("smolagents, CupelModel")


def test_the_example_of_the_documentation_runs() -> None:
    model = Offline()
    names = adapters.run_example("smolagents", {"model": model, "weather": weather})
    assert names["result"] == "It is sunny."
    assert sum(len(str(m.content)) for m in model.seen[-1]) < 8000 * 5 < 3 * 16000


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("smolagents")


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.smolagents")
