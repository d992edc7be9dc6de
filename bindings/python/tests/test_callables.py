"""`summarize=` and `counter=`: functions of the caller that `fit` and the other questions call."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

import cupel
from command import ROOT, run
from cupel._adapter import Adapter
from strategies import Json

EXAMPLE = ROOT / "examples/agent-session.json"
SESSION: Json = json.loads(EXAMPLE.read_text(encoding="utf-8"))
MESSAGES: list[Json] = SESSION["messages"]


class Boom(Exception):
    pass


def brief(messages: list[Any]) -> str:
    return f"Summary of {len(messages)} messages."


def test_a_function_gets_the_dropped_messages_and_its_text_takes_their_place() -> None:
    asked: list[list[Json]] = []

    def summarize(messages: list[Json]) -> str:
        asked.append(messages)
        return brief(messages)

    fitted = cupel.fit(SESSION, "2k", summarize=summarize)
    dropped = [entry["index"] for entry in fitted.dropped]
    assert dropped and fitted.tokens_after <= 2_000
    # The caller's own objects, in order.
    given = [id(message) for messages in asked for message in messages]
    assert given == [id(MESSAGES[index]) for index in dropped]
    assert [marker["text"] for marker in fitted.markers] == [brief(messages) for messages in asked]
    texts = json.dumps(fitted.messages)
    assert all(brief(messages) in texts for messages in asked)


def test_windows_are_those_of_the_command() -> None:
    command = json.loads(
        run("fit", str(EXAMPLE), "--json", "--budget", "2k", "--summarize", "echo Hm.").stdout
    )
    fitted = cupel.fit(SESSION, "2k", summarize=lambda messages: "Hm.\n")
    assert fitted.kept == command["kept"]
    assert fitted.markers == command["markers"]
    assert fitted.tokens_after == command["tokens_after"]


def test_messages_of_langchain_are_summarized_as_such() -> None:
    chat: list[BaseMessage] = [HumanMessage("Count.")]
    for number in range(40):
        chat += [AIMessage(f"The number is {number}. " * 4), HumanMessage("Go on.")]
    asked: list[Any] = []

    def summarize(messages: list[BaseMessage]) -> str:
        asked.extend(messages)
        return "They counted."

    fitted = cupel.fit(chat, 400, summarize=summarize, summary_tokens=50)
    assert asked and all(isinstance(message, BaseMessage) for message in fitted.messages)
    assert {id(message) for message in asked} <= {id(message) for message in chat}
    assert any("They counted." in str(message.content) for message in fitted.messages)


def test_a_long_summary_is_cut_at_a_word() -> None:
    fitted = cupel.fit(SESSION, "2k", summarize=lambda _: "word " * 500, summary_tokens=20)
    text = fitted.markers[0]["text"]
    assert text.startswith("word word") and text.endswith("word [...]")
    assert cupel.count(text) <= 20


class Asked:
    """Summarizes, and counts how often it is asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, messages: list[Any]) -> str:
        self.count += 1
        return brief(messages)


def test_a_session_asks_once_per_cut() -> None:
    asked = Asked()
    fitter = cupel.Fitter("2k", summarize=asked)
    first = fitter.fit(MESSAGES)
    assert asked.count == len(first.markers) > 0
    grown = [*MESSAGES, {"role": "assistant", "content": "Done."}]
    second = fitter.fit(grown)
    assert second.markers == first.markers
    assert asked.count == len(first.markers)
    # The summaries are in the state, also of a fitter that was pickled.
    resumed = cupel.Fitter("2k", summarize=asked, state=fitter.state)
    assert resumed.fit(grown).markers == first.markers
    pickled = pickle.loads(pickle.dumps(cupel.Fitter("2k", summarize=brief, state=fitter.state)))
    assert pickled.fit(grown).markers == first.markers
    assert asked.count == len(first.markers)


def test_a_state_file_has_the_summaries_of_each_function(tmp_path: Path) -> None:
    asked, state = Asked(), tmp_path / "chat.state"
    first = cupel.fit(SESSION, "2k", summarize=asked, state=state)
    assert cupel.fit(SESSION, "2k", summarize=asked, state=state).markers == first.markers
    assert asked.count == len(first.markers)
    other = cupel.fit(SESSION, "2k", summarize=lambda _: "Another one.", state=state)
    assert {marker["text"] for marker in other.markers} == {"Another one."}
    assert list(tmp_path.iterdir()) == [state]


def test_the_process_remembers_the_summaries_of_a_function() -> None:
    # Adapters have no session.
    asked = Asked()
    adapter = Adapter("Own", "2k", {"summarize": asked})
    first = adapter.fit(MESSAGES, shape="openai")
    grown = [*MESSAGES, {"role": "assistant", "content": "Done."}]
    assert adapter.fit(grown, shape="openai").markers == first.markers
    assert asked.count == len(first.markers) > 0
    cupel.fit(MESSAGES, "2k", summarize=asked, summary_tokens=100)
    assert asked.count > len(first.markers)


def test_what_a_summarizer_raises_propagates_and_the_session_does_not_change() -> None:
    raised = Boom("no service")

    def fail(messages: list[Any]) -> str:
        raise raised

    with pytest.raises(Boom) as caught:
        cupel.fit(SESSION, "2k", summarize=fail)
    assert caught.value is raised
    fitter = cupel.Fitter("2k", summarize=fail)
    before = fitter.state
    with pytest.raises(Boom):
        fitter.fit(SESSION)
    assert fitter.state == before
    # Nothing is dropped, so nothing is summarized.
    assert cupel.fit(SESSION, "1M", summarize=fail).markers == []


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "summarize: the function returned NoneType, expected a text"),
        (["a"], "summarize: the function returned list, expected a text"),
        ("", "summarize: the summary is empty"),
        (" \n", "summarize: the summary is empty"),
    ],
)
def test_a_summary_is_a_text(result: Any, message: str) -> None:
    with pytest.raises(cupel.InvalidInputError) as caught:
        cupel.fit(SESSION, "2k", summarize=lambda _: result)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"summarize": "brief"}, "summarize: expected a function from messages to a text, got str"),
        ({"summary_tokens": 9}, "summary_tokens: has no effect without summarize"),
        ({"summarize": brief, "summary_tokens": 0}, "summary_tokens: expected 1 to 100,000"),
        ({"summarize": brief, "summary_tokens": "1M"}, "summary_tokens: expected 1 to 100,000"),
        ({"summarize": brief, "marker": "off"}, "marker: cannot be given with summarize="),
        ({"summarize": brief, "policy": "newest"}, "summarize= needs a policy with the slicer"),
    ],
)
def test_options_of_summaries_are_checked_before_there_is_a_chat(
    options: dict[str, Any], message: str
) -> None:
    for make in (
        lambda: cupel.Fitter("2k", **options),
        lambda: Adapter("Own", "2k", options).check(),
        lambda: cupel.fit(SESSION, "2k", **options),
    ):
        with pytest.raises(cupel.InvalidInputError) as caught:
            make()
        assert message in str(caught.value)


def test_items_have_no_summaries() -> None:
    with pytest.raises(cupel.InvalidInputError, match="a summary needs a chat"):
        cupel.fit([{"content": "a", "tokens": 5}], 3, shape="items", summarize=brief)


def test_an_async_function_is_awaited_in_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    async def main() -> tuple[cupel.Fitted[Any], cupel.Fitted[Any]]:
        loop, moved = asyncio.get_running_loop(), asyncio.Event()

        async def summarize(messages: list[Any]) -> str:
            threads.append(threading.current_thread())
            # Another task runs meanwhile.
            loop.call_later(0.01, moved.set)
            await asyncio.wait_for(moved.wait(), 60)
            moved.clear()
            return brief(messages)

        alone = await cupel.afit(SESSION, "2k", summarize=summarize)
        threads.clear()
        fitter = cupel.Fitter("2k", summarize=lambda messages: summarize(messages))
        return alone, await fitter.afit(SESSION)

    for fitted in asyncio.run(main()):
        assert fitted.markers == cupel.fit(SESSION, "2k", summarize=brief).markers
    assert set(threads) == {threading.main_thread()}


def test_a_function_that_waits_does_not_block_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def summarize(messages: list[Any]) -> str:
        threads.append(threading.current_thread())
        return brief(messages)

    asyncio.run(cupel.afit(SESSION, "2k", summarize=summarize))
    assert threads and threading.main_thread() not in threads


def test_an_async_function_needs_an_async_call(recwarn: pytest.WarningsRecorder) -> None:
    async def summarize(messages: list[Any]) -> str:
        return brief(messages)

    with pytest.raises(cupel.InvalidInputError) as caught:
        cupel.fit(SESSION, "2k", summarize=summarize)
    assert str(caught.value).startswith("summarize: an async function needs an event loop")
    assert caught.value.help == "pass a function that is not async, or use afit"
    assert not [it for it in recwarn if "never awaited" in str(it.message)]

    async def inside(messages: list[Any]) -> str:
        # A call inside of the event loop is one of its own, whoever waits for it.
        cupel.fit(SESSION, "2k", summarize=brief)
        with pytest.raises(cupel.InvalidInputError):
            cupel.fit(SESSION, "2k", summarize=summarize)
        return brief(messages)

    assert asyncio.run(cupel.afit(SESSION, "2k", summarize=inside)).markers


def test_a_canceled_call_cancels_the_summary() -> None:
    states: list[str] = []

    async def summarize(messages: list[Any]) -> str:
        states.append("asked")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            states.append("canceled")
            raise
        return ""

    async def main() -> None:
        call = asyncio.create_task(cupel.afit(SESSION, "2k", summarize=summarize))
        while not states:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert states == ["asked", "canceled"]


def words(text: str) -> int:
    return len(text.split())


ITEMS = [{"content": "one two three"}, {"content": "four five"}, {"content": "six"}]


def test_a_counter_counts_what_has_no_tokens() -> None:
    assert cupel.count("one two three", counter=words) == 3
    assert cupel.count(ITEMS, counter=words) == 6
    assert cupel.select(ITEMS, 6, counter=words).tokens == 6
    assert sorted(cupel.select_index(ITEMS, 3, counter=words)) == [1, 2]
    assert [item.tokens for item in cupel.Items(ITEMS, counter=words)] == [3, 2, 1]
    pipeline = cupel.Pipeline(cupel.Policy.preset("chat"))
    assert pipeline.run(ITEMS, 6, counter=words).tokens == 6
    answer = cupel.explain(ITEMS, 100, counter=words)
    assert sorted(it["tokens"] for it in answer["candidates"]) == [1, 2, 3]
    assert cupel.sweep(ITEMS, counter=words)["steps"][-1]["from"] == 6
    least = cupel.min_budget(ITEMS, item=0, counter=words)
    assert least["items"][0]["min_budget"] == 6


def test_a_counter_equal_to_an_encoding_gives_its_windows() -> None:
    def o200k(text: str) -> int:
        return cupel.count(text)

    for budget in ("2k", "4k", "1M"):
        own = cupel.fit(SESSION, budget, counter=o200k)
        assert own.counter == "o200k"
        assert own.to_dict() | {"counter": None} == cupel.fit(
            SESSION, budget, encoding="o200k"
        ).to_dict() | {"counter": None}


def test_a_counter_is_asked_once_per_text() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return words(text)

    fitter = cupel.Fitter("1k", counter=count)
    fitter.fit(SESSION)
    assert len(asked) == len(set(asked)) > 40
    asked.clear()
    # Also in other calls, as long as there is the function.
    fitter.fit(SESSION)
    cupel.fit(SESSION, "1k", counter=count)
    cupel.count(SESSION, counter=count)
    assert asked == []


def test_each_counter_has_its_own_counts() -> None:
    def constant(tokens: int) -> Callable[[str], int]:
        return lambda text: tokens

    counters = [constant(tokens) for tokens in (1, 2, 3)]
    assert [cupel.count("a", counter=counter) for counter in counters] == [1, 2, 3]


QUESTIONS: list[Callable[[Callable[[str], int]], object]] = [
    lambda counter: cupel.fit(SESSION, "2k", counter=counter),
    lambda counter: cupel.fit(SESSION, "2k", counter=counter, summarize=brief),
    lambda counter: cupel.Fitter("2k", counter=counter).fit(SESSION),
    lambda counter: asyncio.run(cupel.afit(SESSION, "2k", counter=counter)),
    lambda counter: Adapter("Own", "2k", {"counter": counter}).fit(MESSAGES, shape="openai"),
    lambda counter: cupel.count("a", counter=counter),
    lambda counter: cupel.count(SESSION, counter=counter),
    lambda counter: cupel.select(ITEMS, 5, counter=counter),
    lambda counter: cupel.select_index(ITEMS, 5, counter=counter),
    lambda counter: cupel.Items(ITEMS, counter=counter),
    lambda counter: cupel.Pipeline(cupel.Policy.preset("chat")).run(ITEMS, 5, counter=counter),
    lambda counter: cupel.explain(SESSION, "2k", counter=counter),
    lambda counter: cupel.sweep(SESSION, policy="single", counter=counter),
    lambda counter: cupel.min_budget(SESSION, item=1, policy="single", counter=counter),
    lambda counter: cupel.compare(SESSION, "2k", policies=["single", "newest"], counter=counter),
    lambda counter: cupel.search(SESSION, "tests", counter=counter),
]


@pytest.mark.parametrize("ask", QUESTIONS)
def test_what_a_counter_raises_propagates(ask: Callable[[Callable[[str], int]], object]) -> None:
    raised, fails = Boom("no tokenizer"), True

    def count(text: str) -> int:
        if fails:
            raise raised
        return words(text)

    with pytest.raises(Boom) as caught:
        ask(count)
    assert caught.value is raised
    # Nothing that was counted then is remembered.
    fails = False
    ask(count)
    assert (
        cupel.fit(SESSION, "1k", counter=count).kept
        == cupel.fit(SESSION, "1k", counter=lambda text: words(text)).kept
    )


def test_a_session_does_not_remember_what_a_failing_counter_counted() -> None:
    fails = False

    def count(text: str) -> int:
        if fails:
            raise Boom
        return words(text)

    fitter = cupel.Fitter("1k", counter=count)
    fitter.fit(MESSAGES[:20])
    before, fails = fitter.state, True
    with pytest.raises(Boom):
        fitter.fit(MESSAGES)
    assert fitter.state == before
    fails = False
    assert fitter.fit(MESSAGES).kept == cupel.fit(MESSAGES, "1k", counter=words).kept


@pytest.mark.parametrize(
    ("result", "shown"),
    [(-1, "-1"), (1.5, "float"), ("3", "str"), (True, "bool"), (None, "NoneType"), (2**70, 2**70)],
)
def test_a_count_is_an_integer_from_0(result: Any, shown: object) -> None:
    def count(text: str) -> Any:
        return result

    with pytest.raises(cupel.InvalidInputError) as caught:
        cupel.fit(SESSION, "2k", counter=count)
    expected = f"counter: the counter count returned {shown}, expected an integer from 0"
    assert str(caught.value) == expected
    assert cupel.count("a", counter=lambda text: numpy.int32(7)) == 7  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counter": "o200k"}, "counter: expected a function from a text to its tokens, got str"),
        ({"counter": words, "encoding": "o200k"}, "counter: cannot be given with encoding="),
        ({"margin": 150}, "margin: expected a percentage from 0 to 100, got 150"),
        ({"margin": -1.5}, "margin: expected a percentage from 0 to 100, got -1.5"),
        ({"margin": "5"}, "margin: expected a number, got str"),
        ({"reserve": "8kk"}, "reserve: "),
        ({"target": "8kk"}, "target: "),
    ],
)
def test_counters_and_limits_are_checked_before_there_is_a_chat(
    options: dict[str, Any], message: str
) -> None:
    for make in (
        lambda: cupel.Fitter("2k", **options),
        lambda: Adapter("Own", "2k", options).check(),
    ):
        with pytest.raises(cupel.InvalidInputError) as caught:
            make()
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [("margin", "10"), ("margin", "50"), ("target", "1500"), ("reserve", "500"), ("factor", "1.5")],
)
def test_limits_are_those_of_the_command(option: str, value: str) -> None:
    arguments = ["fit", str(EXAMPLE), "--json", "--budget", "2k", "--policy", "single"]
    command = json.loads(run(*arguments, f"--{option}", value).stdout)
    options: dict[str, Any] = {option: float(value) if option in ("margin", "factor") else value}
    fitted = cupel.fit(SESSION, "2k", policy="single", **options)
    assert fitted.kept == command["kept"]
    assert fitted.tokens_after == command["tokens_after"]
    assert fitted.kept != cupel.fit(SESSION, "2k", policy="single").kept
    assert cupel.Fitter("2k", policy="single", **options).fit(SESSION).kept == fitted.kept
