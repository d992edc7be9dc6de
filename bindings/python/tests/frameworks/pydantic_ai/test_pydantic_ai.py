"""`cupel.pydantic_ai` in agents of pydantic-ai with an offline model."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import adapters
import cupel
import long_chat
from cupel.pydantic_ai import CupelCapability

LONG = "\n".join(f"line {i}: cloudy" for i in range(60))


def history() -> list[ModelMessage]:
    return [
        ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart("first " * 60)]),
        ModelResponse(parts=[ToolCallPart("weather", {"city": "Rome"}, "c0")]),
        ModelRequest(parts=[ToolReturnPart("weather", LONG, "c0")]),
        ModelResponse(parts=[ThinkingPart("Clouds."), TextPart("It is cloudy. " * 20)]),
        ModelRequest(parts=[UserPromptPart("And in Oslo?")]),
        ModelResponse(parts=[ToolCallPart("weather", {"city": "Oslo"}, "c1")]),
        ModelRequest(parts=[ToolReturnPart("weather", "snow", "c1")]),
        ModelResponse(parts=[TextPart("It snows.")]),
    ]


class Run:
    """One run of an agent, with what the model was sent."""

    def __init__(self, is_async: bool = True, **options: Any) -> None:
        settings: dict[str, Any] = options.pop("agent", {})
        self.history = options.pop("history", history())
        self.seen: list[list[ModelMessage]] = []
        agent = Agent(
            FunctionModel(self.answer), capabilities=[CupelCapability(**options)], **settings
        )

        @agent.tool_plain
        def weather(city: str) -> str:
            """Returns the weather of a city."""
            return "sunny"

        if is_async:
            result = asyncio.run(agent.run("And in Bonn?", message_history=self.history))
        else:
            result = agent.run_sync("And in Bonn?", message_history=self.history)
        self.messages = result.all_messages()

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(messages)
        if isinstance(messages[-1].parts[-1], UserPromptPart):
            return ModelResponse(parts=[ToolCallPart("weather", {"city": "Bonn"}, "new")])
        return ModelResponse(parts=[TextPart("sunny")])


def parts(messages: list[ModelMessage]) -> list[Any]:
    """Returns the parts of all messages: pydantic-ai merges adjacent requests of a window."""
    return [part for message in messages for part in message.parts]


def kinds(messages: list[ModelMessage]) -> list[str]:
    return [part.part_kind for part in parts(messages)]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_gets_the_fitted_messages_and_the_history_keeps_all(is_async: bool) -> None:
    run = Run(is_async, budget=160, policy="single", keep_task=False, shorten="off")
    step = ["tool-call", "tool-return"]
    # The system prompt stays, the user prompt of the same request does not.
    window = ["system-prompt", "user-prompt", *step, "text", "user-prompt"]
    assert [kinds(messages) for messages in run.seen] == [window, window + step]
    assert kinds(run.messages) == kinds(history()) + ["user-prompt", *step, "text"]


def test_kept_parts_are_the_agents_own_objects() -> None:
    before = history()
    unchanged = copy.deepcopy(before)
    run = Run(history=before, budget=160, policy="single", keep_task=False, shorten="off")
    own = [before[0].parts[0], *parts(before[4:])]
    assert all(a is b for a, b in zip(parts(run.seen[0])[:-1], own, strict=True))
    assert before == unchanged


def test_shortened_texts_are_copies() -> None:
    text = "\n".join(f"step {i} of the plan" for i in range(80))
    end = TextPart("The end.")
    before = history()
    before[3] = ModelResponse(parts=[TextPart(text), end], model_name="function")
    unchanged = copy.deepcopy(before)
    run = Run(history=before, budget=400, keep_task=False)
    shortened = [p for p in parts(run.seen[0]) if isinstance(p, ToolReturnPart)]
    assert [part.tool_call_id for part in shortened] == ["c0", "c1"]
    assert len(shortened[0].model_response_str()) < len(LONG)
    assert shortened[0].tool_name == "weather"
    texts = [p for p in parts(run.seen[0]) if isinstance(p, TextPart)]
    assert len(texts[0].content) < len(text)
    assert texts[1] is end
    assert before == unchanged


def smallest_budget(**options: Any) -> int:
    """Returns the smallest budget that keeps the mandatory messages."""
    low, high = 1, 2000
    while low < high:
        middle = (low + high) // 2
        try:
            Run(history=[], budget=middle, agent=options)
            high = middle
        except cupel.OverBudgetError:
            low = middle + 1
    return low


def test_instructions_system_prompts_and_tools_are_counted() -> None:
    plain = smallest_budget(instructions="Be brief.")
    assert smallest_budget(instructions="Be brief." + " Always." * 20) - plain == 40
    prompted = smallest_budget(system_prompt="Be brief.")
    assert smallest_budget(system_prompt="Be brief." + " Always." * 20) - prompted == 40

    def time(zone: str) -> str:
        """Returns the time of a zone."""
        return "noon"

    assert smallest_budget(instructions="Be brief.", tools=[time]) > plain + 20


def test_images_files_and_retries_are_read() -> None:
    image = BinaryContent(b"\x89PNG", media_type="image/png")
    sound = BinaryContent(b"RIFF", media_type="audio/wav")
    before: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(["Look:", image, sound])]),
        ModelResponse(parts=[ToolCallPart("weather", {}, "c0")]),
        ModelRequest(parts=[ToolReturnPart("weather", ["A map.", image], "c0")]),
        ModelResponse(parts=[TextPart("Nice.")]),
    ]
    run = Run(history=before, budget=5000)
    assert all(a is b for a, b in zip(parts(run.seen[0])[:-1], parts(before), strict=True))


def test_output_retries_are_read() -> None:
    seen: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[TextPart("no" if len(seen) == 1 else "yes")])

    agent = Agent(FunctionModel(model), capabilities=[CupelCapability(budget=500)])

    @agent.output_validator
    def check(text: str) -> str:
        if text == "no":
            raise ModelRetry("Say yes.")
        return text

    assert agent.run_sync("Well?").output == "yes"
    assert len(seen[1]) == 3


@pytest.mark.parametrize("is_async", [False, True])
def test_mandatory_messages_over_the_budget_raise(is_async: bool) -> None:
    with pytest.raises(cupel.OverBudgetError):
        Run(is_async, budget=20)


@pytest.mark.parametrize("budget", range(150, 900, 50))
def test_calls_stay_with_their_returns(budget: int) -> None:
    for messages in Run(budget=budget, keep_task=False).seen:
        calls = [p.tool_call_id for p in parts(messages) if isinstance(p, ToolCallPart)]
        returns = [p.tool_call_id for p in parts(messages) if isinstance(p, ToolReturnPart)]
        assert calls == returns


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    reuse = long_chat.Reuse()

    def review(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn, step = divmod(reuse.calls, 2)
        # The parts show their times: a part that is made anew is another one.
        reuse.add([repr(part) for part in parts(messages)])
        if step:
            return ModelResponse(parts=[TextPart(long_chat.answer(turn))])
        calls = [long_chat.call(turn, name) for name in ("read", "search")]
        return ModelResponse(parts=[ToolCallPart(name, args, id) for id, name, args in calls])

    agent = Agent(
        FunctionModel(review),
        system_prompt=long_chat.SYSTEM,
        tools=[*long_chat.tools()],
        capabilities=[CupelCapability(budget=long_chat.BUDGET, model=long_chat.MODEL)],
    )
    messages: list[ModelMessage] = []
    for turn in range(long_chat.TURNS):
        result = agent.run_sync(long_chat.question(turn), message_history=messages)
        messages = result.all_messages()
    reuse.check("pydantic-ai, CupelCapability")


def test_the_example_of_the_documentation_runs() -> None:
    seen: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[TextPart("It is sunny.")])

    def weather(city: str) -> str:
        """Returns the weather of a city."""
        return "sunny"

    old = [*history(), ModelResponse(parts=[TextPart(adapters.OLD)])]
    names = {"model": FunctionModel(model), "weather": weather, "history": old}
    assert adapters.run_example("pydantic-ai", names)["result"].output == "It is sunny."
    contents = [getattr(part, "content", None) for part in parts(seen[0])]
    assert contents[-1] == adapters.QUESTION and adapters.OLD not in contents


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("pydantic_ai")


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(CupelCapability)


def test_the_callback_gets_each_window() -> None:
    seen: list[cupel.Fitted[Any]] = []
    run = Run(budget=400, keep_task=False, on_fit=seen.append)
    assert len(seen) == len(run.seen) == 2
    assert all(fitted.shortened and fitted.tokens_after <= 400 for fitted in seen)


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.pydantic_ai")
