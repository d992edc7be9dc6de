"""`cupel.openai_agents` in runs of the Agents SDK with an offline model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

import adapters
import cupel
import long_chat
from cupel.openai_agents import input_filter

set_tracing_disabled(True)


class Offline(Model):
    """Calls the tool once per question, then answers; remembers its inputs."""

    def __init__(self) -> None:
        self.seen: list[list[Any]] = []
        self.instructions: list[str | None] = []

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        self.seen.append(input)
        self.instructions.append(system_instructions)
        output: Any
        if input[-1].get("type") == "function_call_output":
            text = ResponseOutputText(type="output_text", text="Sunny.", annotations=[])
            output = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        else:
            output = ResponseFunctionToolCall(
                type="function_call", call_id="new", name="weather", arguments='{"city":"Bonn"}'
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@function_tool
def weather(city: str) -> str:
    """Returns the weather of a city."""
    return "sunny"


def call(id: str, result: str) -> list[Any]:
    return [
        {"type": "function_call", "call_id": id, "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": id, "output": result},
    ]


HISTORY: list[Any] = [
    {"role": "user", "content": "first " * 60},
    *call("c0", "\n".join(f"line {i}: cloudy" for i in range(60))),
    {"role": "assistant", "content": "It is cloudy. " * 20},
    {"role": "user", "content": "And in Oslo?"},
    *call("c1", "snow"),
    {"role": "assistant", "content": "It snows."},
]


def agent(**options: Any) -> tuple[Offline, Agent[Any]]:
    model = Offline()
    settings: dict[str, Any] = {"instructions": "Be brief.", "tools": [weather]} | options
    return model, Agent(name="agent", model=model, **settings)


def run(is_async: bool = True, history: Any = HISTORY, **options: Any) -> tuple[Offline, list[Any]]:
    model, offline = agent(**options.pop("agent", {}))
    config = RunConfig(call_model_input_filter=input_filter(**options))
    session = SQLiteSession("session")

    async def main() -> list[Any]:
        await session.add_items(history)
        if is_async:
            await Runner.run(offline, "And in Bonn?", session=session, run_config=config)
        else:
            await asyncio.to_thread(
                Runner.run_sync, offline, "And in Bonn?", session=session, run_config=config
            )
        return await session.get_items()

    return model, asyncio.run(main())


def kinds(items: list[Any]) -> list[str]:
    return [item.get("type", item.get("role")) for item in items]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_gets_the_fitted_items_and_the_session_keeps_all(is_async: bool) -> None:
    model, session = run(is_async, budget=180, policy="single", keep_task=False, shorten="off")
    step = ["function_call", "function_call_output"]
    assert [kinds(items) for items in model.seen] == [
        ["user", *step, "assistant", "user"],
        ["user", *step, "assistant", "user", *step],
    ]
    assert session[: len(HISTORY)] == HISTORY
    assert kinds(session[len(HISTORY) :]) == ["user", *step, "message"]
    assert model.instructions == ["Be brief."] * 2


def test_kept_items_are_the_runners_own_objects_and_shortened_ones_are_copies() -> None:
    from agents.run import CallModelData, ModelInputData

    _, offline = agent()
    items = [*HISTORY, {"role": "user", "content": "And in Bonn?"}]
    before = [dict(item) for item in items]
    data = CallModelData(ModelInputData(list(items), "Be brief."), offline, None)
    fitted = asyncio.run(_await(input_filter(budget=450, keep_task=False)(data))).input
    changed = [item for item in fitted if not any(item is given for given in items)]
    assert [item.get("call_id") for item in changed] == ["c0"]
    assert len(changed[0]["output"]) < len(HISTORY[2]["output"])
    assert items == before


async def _await(value: Any) -> Any:
    return await value


def smallest_budget(**options: Any) -> int:
    """Returns the smallest budget that keeps the mandatory items."""
    low, high = 1, 2000
    while low < high:
        middle = (low + high) // 2
        try:
            run(history=[], budget=middle, agent=options)
            high = middle
        except cupel.OverBudgetError:
            low = middle + 1
    return low


def test_instructions_tools_and_handoffs_are_counted() -> None:
    plain = smallest_budget()
    assert smallest_budget(instructions="Be brief." + " Always." * 20) - plain == 40

    @function_tool
    def time(zone: str) -> str:
        """Returns the time of a zone."""
        return "noon"

    assert smallest_budget(tools=[weather, time]) > plain + 20
    other = Agent(name="other", handoff_description="Knows more. " * 10)
    assert smallest_budget(handoffs=[other]) > plain + 30


def test_mandatory_items_over_the_budget_raise() -> None:
    with pytest.raises(cupel.OverBudgetError):
        run(budget=20)


@pytest.mark.parametrize("budget", range(150, 900, 50))
def test_calls_stay_with_their_outputs(budget: int) -> None:
    model, _ = run(budget=budget, keep_task=False)
    for items in model.seen:
        calls = [i["call_id"] for i in items if i.get("type") == "function_call"]
        assert calls == [i["call_id"] for i in items if i.get("type") == "function_call_output"]


class Reviewer(Model):
    """Calls both tools, then answers, in each turn."""

    def __init__(self) -> None:
        self.reuse = long_chat.Reuse()

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        turn, step = divmod(self.reuse.calls, 2)
        self.reuse.add(long_chat.as_json([system_instructions, *input]))
        output: list[Any]
        if step:
            text = ResponseOutputText(
                type="output_text", text=long_chat.answer(turn), annotations=[]
            )
            output = [
                ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            ]
        else:
            output = [
                ResponseFunctionToolCall(
                    type="function_call", call_id=id, name=name, arguments=json.dumps(arguments)
                )
                for id, name, arguments in (long_chat.call(turn, n) for n in ("read", "search"))
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Reviewer()
    reviewer = Agent(
        name="reviewer",
        model=model,
        instructions=long_chat.SYSTEM,
        tools=[function_tool(function) for function in long_chat.tools()],
    )
    fit = input_filter(budget=long_chat.BUDGET, model=long_chat.MODEL)
    config = RunConfig(call_model_input_filter=fit)
    session = SQLiteSession("long")

    async def main() -> None:
        for turn in range(long_chat.TURNS):
            question = long_chat.question(turn)
            await Runner.run(reviewer, question, session=session, run_config=config)

    asyncio.run(main())
    model.reuse.check("OpenAI Agents, input_filter")


def test_the_example_of_the_documentation_runs() -> None:
    old = [*HISTORY, {"role": "assistant", "content": adapters.OLD}]
    model = Offline()
    names = {"model": model, "weather": weather, "history": old}
    assert adapters.run_example("OpenAI Agents", names)["result"].final_output == "Sunny."
    assert adapters.OLD not in [item.get("content") for item in model.seen[0]]
    assert model.seen[0][-1]["content"] == adapters.QUESTION


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("openai_agents")


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(input_filter)


def test_the_callback_gets_each_window() -> None:
    seen: list[cupel.Fitted[Any]] = []
    model, _ = run(budget=450, keep_task=False, on_fit=seen.append)
    assert [fitted.messages for fitted in seen] == model.seen


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.openai_agents")
