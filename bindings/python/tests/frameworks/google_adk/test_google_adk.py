"""`cupel.google_adk` in runs of the Agent Development Kit with an offline model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import adapters
import cupel
import long_chat
from cupel.google_adk import CupelPlugin

MODEL = "gemini-2.5-flash"


class Offline(BaseLlm):
    """Calls the tool once per question, then answers; remembers the requests that it was sent."""

    seen: list[Any] = []

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(llm_request)
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text="It is sunny.")
        else:
            part = types.Part.from_function_call(name="weather", args={"city": "Bonn"})
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def weather(city: str) -> str:
    """Returns the weather of a city."""
    return "sunny"


def content(role: str, *parts: types.Part) -> types.Content:
    return types.Content(role=role, parts=[*parts])


def call(id: str, city: str, result: str) -> list[types.Content]:
    made = types.FunctionCall(id=id, name="weather", args={"city": city})
    answer = types.FunctionResponse(id=id, name="weather", response={"result": result})
    return [
        content("model", types.Part(function_call=made, thought_signature=b"\x01\xff")),
        content("user", types.Part(function_response=answer)),
    ]


def history() -> list[types.Content]:
    return [
        content("user", types.Part(text="first " * 60)),
        *call("c0", "Rome", adapters.LONG),
        content("model", types.Part(text="It is cloudy. " * 20)),
        content("user", types.Part(text="And in Oslo?")),
        *call("c1", "Oslo", "snow"),
        content("model", types.Part(text="It snows.")),
    ]


def run(
    budget: Any,
    contents: list[types.Content] | None = None,
    is_callback: bool = False,
    agent: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[list[LlmRequest], list[Event]]:
    """Runs an agent, and returns the requests of its model and the events of its session."""
    model = Offline(model=MODEL, seen=[])
    plugin = CupelPlugin(budget, **options)
    settings: dict[str, Any] = {"instruction": "Be brief.", "tools": [weather]} | (agent or {})
    if is_callback:
        settings["before_model_callback"] = plugin.before_model_callback
    made = Agent(name="assistant", model=model, **settings)
    plugins: list[Any] = [] if is_callback else [plugin]
    runner = InMemoryRunner(app=App(name="app", root_agent=made, plugins=plugins))

    async def main() -> list[Event]:
        sessions = runner.session_service
        session = await sessions.create_session(app_name="app", user_id="user")
        for old in history() if contents is None else contents:
            author = "assistant" if old.role == "model" else "user"
            # The results of tools are events of the agent.
            if old.parts and old.parts[0].function_response:
                author = "assistant"
            await sessions.append_event(
                session, Event(author=author, content=old, invocation_id="old")
            )
        question = content("user", types.Part(text="And in Bonn?"))
        events = runner.run_async(user_id="user", session_id=session.id, new_message=question)
        async for _ in events:
            pass
        stored = await sessions.get_session(app_name="app", user_id="user", session_id=session.id)
        assert stored is not None
        return stored.events

    return model.seen, asyncio.run(main())


def kinds(contents: list[types.Content]) -> list[str]:
    """Returns what each content is: a text of a role, a call or a result."""
    found = []
    for it in contents:
        [part] = it.parts or []
        result = "result" if part.function_response else f"{it.role}"
        found.append("call" if part.function_call else result)
    return found


@pytest.mark.parametrize("is_callback", [False, True])
def test_the_model_gets_the_fitted_contents_and_the_session_keeps_all(is_callback: bool) -> None:
    requests, events = run(260, is_callback=is_callback, **adapters.NEWEST)
    step = ["call", "result"]
    window = ["user", *step, "model", "user"]
    assert [kinds(request.contents) for request in requests] == [window, window + step]
    stored = [event.content for event in events]
    assert kinds(stored) == kinds(history()) + ["user", *step, "model"]
    assert [it.model_dump() for it in stored[:8]] == [it.model_dump() for it in history()]


def fit(contents: list[types.Content], budget: Any, **options: Any) -> list[types.Content]:
    """Calls the plugin as a runner does, and returns the contents of the request after."""
    request = LlmRequest(model=MODEL, contents=contents)
    plugin: Any = CupelPlugin(budget, **options)
    asyncio.run(plugin.before_model_callback(callback_context=None, llm_request=request))
    return request.contents


def test_kept_contents_are_the_own_objects_and_shortened_ones_are_copies() -> None:
    contents = [*history(), content("user", types.Part(text="And in Bonn?"))]
    before = [it.model_dump() for it in contents]
    window = fit(contents, 420, keep_task=False)
    changed = [it for it in window if not any(it is old for old in contents)]
    [short] = changed
    assert isinstance(short, types.Content)
    response = short.parts[0].function_response
    assert response.id == "c0" and list(response.response) == ["result"]
    assert len(response.response["result"]) < len(adapters.LONG)
    signatures = [p.thought_signature for it in window for p in it.parts if p.function_call]
    assert signatures == [b"\x01\xff"] * 2
    assert [it.model_dump() for it in contents] == before


def test_a_marker_is_a_content() -> None:
    contents = [*history(), content("user", types.Part(text="And in Bonn?"))]
    window = fit(contents, 250, shorten="off", marker="[{n} left out]")
    assert all(isinstance(it, types.Content) for it in window)
    texts = [part.text or "" for it in window for part in it.parts]
    assert any("left out]" in text for text in texts)


def test_instructions_of_any_form_are_counted() -> None:
    def tokens(system: Any, **config: Any) -> int:
        seen: list[cupel.Fitted[Any]] = []
        settings = types.GenerateContentConfig(system_instruction=system, **config)
        request = LlmRequest(model=MODEL, contents=history()[:1], config=settings)
        plugin: Any = CupelPlugin("8k", on_fit=seen.append)
        asyncio.run(plugin.before_model_callback(callback_context=None, llm_request=request))
        return seen[0].tokens_before

    part = types.Part(text="Be brief." * 20)
    forms = ["Be brief." * 20, part, [part], ["Be brief." * 20], content("user", part)]
    plain, *counted = [tokens(None), *map(tokens, forms)]
    assert len(set(counted)) == 1 and counted[0] > plain + 20
    declaration = types.FunctionDeclaration(name="weather", description="Always. " * 20)
    tool = types.Tool(function_declarations=[declaration])
    assert tokens(None, tools=[tool]) > plain + 20
    assert tokens(None, tools=[weather]) > plain


def test_instructions_and_tools_of_an_agent_are_counted() -> None:
    def smallest(**agent: Any) -> int:
        return adapters.smallest_budget(lambda n: run(n, [], is_callback=True, agent=agent))

    plain = smallest()
    assert smallest(instruction="Be brief." + " Always." * 20) - plain > 20

    def time(zone: str) -> str:
        """Returns the time of a zone, always, always, always."""
        return "noon"

    assert smallest(tools=[weather, time]) > plain + 20


def test_mandatory_contents_over_the_budget_raise() -> None:
    with pytest.raises(cupel.OverBudgetError):
        run(20, is_callback=True)
    # A runner wraps the errors of its plugins.
    with pytest.raises(RuntimeError, match="over the budget of 20") as caught:
        run(20)
    assert isinstance(caught.value.__cause__, cupel.OverBudgetError)


@pytest.mark.parametrize("budget", range(200, 900, 50))
def test_calls_stay_with_their_results(budget: int) -> None:
    requests, _ = run(budget, keep_task=False)
    for request in requests:
        parts = [part for it in request.contents for part in it.parts]
        calls = [(p.function_call.name, p.function_call.id) for p in parts if p.function_call]
        results = [
            (p.function_response.name, p.function_response.id) for p in parts if p.function_response
        ]
        assert calls == results


def test_files_and_code_are_read() -> None:
    image = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
    code = types.Part(executable_code=types.ExecutableCode(code="1 + 1", language="PYTHON"))
    done = types.CodeExecutionResult(outcome="OUTCOME_OK", output="2")
    contents = [
        content("user", types.Part(text="Look:"), image),
        content("model", code, types.Part(code_execution_result=done), types.Part(text="2")),
        content("user", types.Part(text="Nice.")),
    ]
    window = fit(contents, "8k")
    assert all(a is b for a, b in zip(window, contents, strict=True))


def test_the_callback_gets_each_window() -> None:
    seen: list[cupel.Fitted[Any]] = []
    requests, _ = run(450, keep_task=False, on_fit=seen.append)
    assert [len(fitted.messages) for fitted in seen] == [len(it.contents) for it in requests]
    assert all(fitted.shortened and fitted.tokens_after <= 450 for fitted in seen)


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(CupelPlugin)


class Reviewer(Offline):
    """Calls both tools, then answers, in each turn."""

    reuse: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        turn, step = divmod(self.reuse.calls, 2)
        system = llm_request.config.system_instruction
        contents = [it.model_dump(exclude_none=True) for it in llm_request.contents]
        self.reuse.add(long_chat.as_json([system, *contents]))
        calls = [long_chat.call(turn, name) for name in ("read", "search")]
        if step:
            parts = [types.Part(text=long_chat.answer(turn))]
        else:
            parts = [types.Part.from_function_call(name=n, args=a) for _, n, a in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Reviewer(model=MODEL, reuse=long_chat.Reuse())
    agent = Agent(
        name="reviewer",
        model=model,
        instruction=long_chat.SYSTEM,
        tools=[*long_chat.tools()],
    )
    plugin = CupelPlugin(long_chat.BUDGET, model=long_chat.MODEL)
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[plugin]))

    async def main() -> None:
        session = await runner.session_service.create_session(app_name="app", user_id="user")
        for turn in range(long_chat.TURNS):
            question = content("user", types.Part(text=long_chat.question(turn)))
            events = runner.run_async(user_id="user", session_id=session.id, new_message=question)
            async for _ in events:
                pass

    asyncio.run(main())
    model.reuse.check("Agent Development Kit, CupelPlugin")


def test_the_example_of_the_documentation_runs() -> None:
    model = Offline(model=MODEL, seen=[])
    names = {"model": model, "weather": weather}
    runner = adapters.run_example("Agent Development Kit", names)["runner"]

    async def main() -> Any:
        session = await runner.session_service.create_session(app_name="app", user_id="user")
        for role, text in [("user", "Hi."), ("model", adapters.OLD)]:
            old = content(role, types.Part(text=text))
            author = "user" if role == "user" else "assistant"
            event = Event(author=author, content=old, invocation_id="old")
            await runner.session_service.append_event(session, event)
        question = content("user", types.Part(text=adapters.QUESTION))
        events = runner.run_async(user_id="user", session_id=session.id, new_message=question)
        return [event async for event in events][-1]

    assert asyncio.run(main()).content.parts[0].text == "It is sunny."
    for request in model.seen:
        texts = [part.text or "" for it in request.contents for part in it.parts]
        assert adapters.OLD not in texts and adapters.QUESTION in texts


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("google_adk")


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.google_adk")
