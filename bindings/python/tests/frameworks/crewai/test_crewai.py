"""`cupel.crewai` in agents of CrewAI with an offline LLM."""

from __future__ import annotations

import asyncio
import copy
import json
import os
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

import pytest
from crewai import Agent, BaseLLM
from crewai.llms.base_llm import call_stop_override, call_stream_override
from crewai.tools import tool

import adapters
import cupel
import long_chat
from cupel.crewai import CupelLLM


class Offline(BaseLLM):
    """Calls a tool until it was called as often as it says, then answers."""

    seen: list[Any] = []
    given: list[dict[str, Any]] = []
    stops: list[list[str]] = []
    streams: list[bool | None] = []
    calls: int = 3

    def call(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> str:
        self.seen.append([*messages])
        self.given.append({"tools": tools, **options})
        self.stops.append(self.stop_sequences)
        self.streams.append(self._effective_stream())
        if len(self.seen) <= self.calls:
            # CrewAI does not call a tool again with the same arguments.
            arguments = json.dumps({"city": f"Bonn {len(self.seen)}"})
            return f"Thought: I need it.\nAction: weather\nAction Input: {arguments}"
        return "Thought: I know.\nFinal Answer: It is sunny."

    async def acall(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> str:
        return self.call(messages, tools, *args, **options)


def offline(**fields: Any) -> Offline:
    return Offline(model="gpt-4o", seen=[], given=[], stops=[], streams=[], **fields)


def call(id: str, result: str) -> list[dict[str, Any]]:
    function = {"name": "weather", "arguments": '{"city": "Rome"}'}
    calls = [{"id": id, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": id, "name": "weather", "content": result},
    ]


def chat() -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first " * 60},
        *call("c0", adapters.LONG),
        {"role": "assistant", "content": "It is cloudy. " * 20},
        {"role": "user", "content": "And in Oslo?"},
        *call("c1", "snow"),
        {"role": "assistant", "content": "It snows."},
        {"role": "user", "content": "And in Bonn?"},
    ]


def ask(llm: CupelLLM, messages: Any, is_async: bool, **options: Any) -> Any:
    if is_async:
        return asyncio.run(llm.acall(messages, **options))
    return llm.call(messages, **options)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_llm_gets_the_fitted_messages_and_the_list_keeps_all(is_async: bool) -> None:
    before = chat()
    unchanged = copy.deepcopy(before)
    model = offline(calls=0)
    ask(CupelLLM(model, 120, **adapters.NEWEST), before, is_async, from_agent="it")
    [sent] = model.seen
    assert all(a is b for a, b in zip(sent, [before[0], *before[5:]], strict=True))
    assert before == unchanged
    assert model.given == [{"tools": None, "from_agent": "it"}]


@pytest.mark.parametrize("is_async", [False, True])
def test_shortened_messages_are_copies(is_async: bool) -> None:
    before = chat()
    unchanged = copy.deepcopy(before)
    model = offline(calls=0)
    ask(CupelLLM(model, 450, keep_task=False), before, is_async)
    results = [message for message in model.seen[0] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ["c0", "c1"]
    assert len(results[0]["content"]) < len(adapters.LONG)
    assert results[1] is before[7]
    assert before == unchanged


@pytest.mark.parametrize("is_async", [False, True])
def test_mandatory_messages_over_the_budget_raise(is_async: bool) -> None:
    with pytest.raises(cupel.OverBudgetError):
        ask(CupelLLM(offline(), 5), chat(), is_async)


@pytest.mark.parametrize("budget", range(200, 900, 50))
def test_calls_stay_with_their_results(budget: int) -> None:
    model = offline(calls=0)
    CupelLLM(model, budget, keep_task=False).call(chat())
    [sent] = model.seen
    calls = [made["id"] for message in sent for made in message.get("tool_calls") or []]
    assert calls == [message["tool_call_id"] for message in sent if message["role"] == "tool"]


def test_tools_are_counted() -> None:
    def smallest(tools: Any) -> int:
        llm = offline(calls=0)
        return adapters.smallest_budget(lambda budget: CupelLLM(llm, budget).call(chat(), tools))

    function = {"name": "weather", "description": "Always. " * 20, "parameters": {}}
    assert smallest([{"type": "function", "function": function}]) > smallest(None) + 20


def test_a_text_is_a_message() -> None:
    model = offline(calls=0)
    assert CupelLLM(model, "8k").call("Hello!").endswith("It is sunny.")
    assert model.seen == [[{"role": "user", "content": "Hello!"}]]


def test_settings_of_a_call_reach_the_other_llm() -> None:
    model = offline(calls=0, stop=["END"])
    llm = CupelLLM(model, "8k")
    assert llm.stop == ["END"]
    llm.call("Hello!")
    with call_stop_override(llm, ["STOP"]), call_stream_override(llm, True):
        llm.call("Hello!")
    assert model.stops == [["END"], ["STOP"]]
    assert model.streams == [None, True]


def test_an_agent_asks_the_other_llm_what_it_can() -> None:
    class Able(Offline):
        def supports_function_calling(self) -> bool:
            return True

        def get_context_window_size(self) -> int:
            return 1234

    able = CupelLLM(Able(model="gpt-4o"), "8k")
    assert able.supports_function_calling() and able.get_context_window_size() == 1234
    assert not hasattr(CupelLLM(offline(), "8k"), "supports_function_calling")
    assert copy.copy(able).llm is able.llm


def run(model: BaseLLM, result: str, budget: Any = "8k", **options: Any) -> Any:
    """Runs an agent whose tool returns a long text, and returns its result."""
    days = iter(range(99))

    @tool
    def weather(city: str) -> str:
        """Returns the weather of a city."""
        return f"Day {next(days)}. {result}"

    llm = CupelLLM(model, budget, **options)
    agent = Agent(role="Assistant", goal="Help.", backstory="Brief.", llm=llm, tools=[weather])
    return agent.kickoff(adapters.QUESTION)


def test_an_agent_keeps_every_message() -> None:
    seen: list[cupel.Fitted[Any]] = []
    model = offline()
    text = adapters.OLD[:16000]
    result = run(model, text, on_fit=seen.append)
    assert result.raw == "It is sunny."
    assert [len(fitted.messages) for fitted in seen] == [len(sent) for sent in model.seen]
    assert all(fitted.tokens_after <= 8000 for fitted in seen)
    assert seen[-1].tokens_before > 8000
    assert adapters.QUESTION in str(model.seen[-1])
    kept = "".join(str(message["content"]) for message in result.messages)
    assert all(f"Day {day}. {text[:-1]}" in kept for day in range(3))


def test_crewai_does_not_summarize_what_is_fitted() -> None:
    class Small(Offline):
        def get_context_window_size(self) -> int:
            return 3000

        def is_tool_result_overflowing_threshold(self, tool_result: str) -> tuple[bool, int]:
            return False, 0

    model = Small(model="gpt-4o", seen=[], given=[], stops=[], streams=[])
    result = run(model, adapters.OLD[:16000], "5k")
    assert result.raw == "It is sunny."
    assert not any("summar" in str(sent).lower() for sent in model.seen)
    assert len(model.seen) == 4


def test_an_agent_raises_what_cannot_be_fitted() -> None:
    with pytest.raises(cupel.OverBudgetError, match="over the budget of 20"):
        run(offline(), "sunny", 20)


def test_wrong_options_are_refused_when_it_is_made() -> None:
    model = offline()
    adapters.check_options(lambda **options: CupelLLM(model, **options))


class Reviewer(Offline):
    """Calls a tool, then answers, in each turn."""

    reuse: Any = None

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        turn, step = divmod(self.reuse.calls, 2)
        self.reuse.add(long_chat.as_json([dict(message) for message in messages]))
        if step:
            return f"Thought: I know.\nFinal Answer: {long_chat.answer(turn)}"
        arguments = json.dumps(long_chat.call(turn, "read")[2])
        return f"Thought: I need it.\nAction: read\nAction Input: {arguments}"


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    read, _ = long_chat.tools()
    model = Reviewer(model="gpt-4o", reuse=long_chat.Reuse())
    messages: list[Any] = []
    for turn in range(long_chat.TURNS):
        # What an agent returns has no final answers.
        if turn:
            messages.append({"role": "assistant", "content": long_chat.answer(turn - 1)})
        messages.append({"role": "user", "content": long_chat.question(turn)})
        agent = Agent(
            role="Reviewer",
            goal="Review.",
            backstory=long_chat.SYSTEM,
            llm=CupelLLM(model, long_chat.BUDGET),
            tools=[tool(read)],
        )
        result = agent.kickoff(messages)
        assert result.raw == long_chat.answer(turn)
        messages = [message for message in result.messages if message["role"] != "system"]
    assert long_chat.read(0)[:-1] in str(messages[:4]).replace("\\n", "\n")
    model.reuse.check("CrewAI, CupelLLM")


def test_the_example_of_the_documentation_runs() -> None:
    @tool
    def weather(city: str) -> str:
        """Returns the weather of a city."""
        return "sunny"

    model = offline(calls=1)
    result = adapters.run_example("CrewAI", {"model": model, "weather": weather})["result"]
    assert result.raw == "It is sunny."
    assert len(model.seen) == 2


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("crewai")


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.crewai")
