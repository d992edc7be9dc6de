"""`fit` and `Fitter`: the caller's own objects in, the caller's own objects out."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import anthropic.types
import numpy
import openai.types.chat
import pandas
import polars
import pyarrow
import pydantic
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from openai.types.chat import ChatCompletionMessage

import cupel
import generate
from command import ROOT, run
from strategies import Json

SESSION: Json = json.loads((ROOT / "examples/agent-session.json").read_text(encoding="utf-8"))
SHAPES = sorted((ROOT / "examples/shapes").glob("*.json"))


def test_the_example_of_the_readme() -> None:
    # The figures are those of README.md.
    fitted = cupel.fit(SESSION, "2k")
    assert (len(fitted.kept), fitted.tokens_after, fitted.tokens_before) == (21, 1_882, 5_869)
    assert fitted.budget == 2_000
    assert [entry["index"] for entry in fitted.shortened] == [8, 13, 14, 30, 33, 34, 41]
    dropped = [*range(2, 8), *range(9, 12), *range(16, 30)]
    assert [entry["index"] for entry in fitted.dropped] == dropped
    assert (fitted.shape, fitted.counter, fitted.estimated) == ("openai", "o200k_base", False)


def test_kept_messages_are_the_objects_of_the_caller() -> None:
    messages = SESSION["messages"]
    before = copy.deepcopy(messages)
    fitted = cupel.fit(messages, "2k", model="gpt-4o")
    shortened = {entry["index"] for entry in fitted.shortened}
    markers = [{"role": marker["role"], "content": marker["text"]} for marker in fitted.markers]
    window = [message for message in fitted.messages if message not in markers]
    assert len(window) == len(fitted.kept)
    for index, message in zip(fitted.kept, window, strict=True):
        if index in shortened:
            assert message is not messages[index]
            assert message.keys() == messages[index].keys()
            assert message["role"] == messages[index]["role"]
            assert cupel.count([message]) < cupel.count([messages[index]])
        else:
            assert message is messages[index]
    assert messages == before


def test_a_request_keeps_its_other_fields() -> None:
    before = copy.deepcopy(SESSION)
    fitted = cupel.fit(SESSION, "2k")
    assert fitted.request is not None and fitted.request is not SESSION
    assert fitted.request["messages"] == fitted.messages
    assert fitted.request["tools"] is SESSION["tools"]
    assert SESSION == before
    assert cupel.fit(SESSION["messages"], "2k").request is None


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
@pytest.mark.parametrize("budget", ["700", "1500", "100k"])
def test_every_shape_gives_what_the_command_gives(path: Path, budget: str) -> None:
    # Models of some files need a vocabulary that is a package of its own.
    arguments = ["--budget", budget, "--encoding", "o200k"]
    expected = json.loads(run("--json", "fit", str(path), *arguments).stdout)
    document = json.loads(path.read_text(encoding="utf-8"))
    fitted = cupel.fit(document, budget, encoding="o200k")
    assert fitted.kept == expected["kept"]
    assert fitted.dropped == expected["dropped"]
    assert fitted.shortened == expected["shortened"]
    assert fitted.tokens_after == expected["tokens_after"]
    assert (fitted.request or fitted.messages) == expected["chat"]


def openai_messages() -> list[Any]:
    """Returns a chat as OpenAI's users have it: dicts, and the answers of the client."""
    messages: list[Any] = []
    for message in generate.chat(random.Random(5))["messages"]:
        is_answer = message["role"] == "assistant"
        messages.append(ChatCompletionMessage.model_validate(message) if is_answer else message)
    return messages


def test_answers_of_the_openai_client_are_messages() -> None:
    messages = openai_messages()
    plain = generate.chat(random.Random(5))["messages"]
    fitted = cupel.fit(messages, 300, model="gpt-4o")
    expected = cupel.fit(plain, 300, model="gpt-4o")
    assert 0 < len(fitted.kept) < len(messages)
    assert fitted.kept == expected.kept
    assert fitted.tokens_after == expected.tokens_after
    assert any(isinstance(message, ChatCompletionMessage) for message in fitted.messages)
    originals = {id(message) for message in messages}
    changed = {entry["index"] for entry in fitted.shortened}
    markers = [{"role": marker["role"], "content": marker["text"]} for marker in fitted.markers]
    window = [message for message in fitted.messages if message not in markers]
    untouched = [m for i, m in zip(fitted.kept, window, strict=True) if i not in changed]
    assert untouched and all(id(message) in originals for message in untouched)


def test_answers_of_the_anthropic_client_are_messages() -> None:
    content = [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "box"}}]
    answer = anthropic.types.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    )
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "word " * 400}
    messages: list[Any] = [
        {"role": "user", "content": "What is in the box?"},
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "A ball."},
        {"role": "user", "content": "Take it."},
    ]
    fitted = cupel.fit(messages, 120, model="claude-sonnet-4-5", system="Be brief.")
    assert fitted.shape == "anthropic"
    assert fitted.tokens_after <= 120 < fitted.tokens_before
    assert fitted.messages[0] is messages[0] and fitted.messages[-1] is messages[-1]


def langchain_messages() -> list[BaseMessage]:
    """Returns a chat of LangChain's classes with a long tool result."""
    call = {"id": "c1", "name": "search", "args": {"query": "parcel"}, "type": "tool_call"}
    return [
        SystemMessage("Be brief."),
        HumanMessage("Where is the parcel?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("line of the log\n" * 200, tool_call_id="c1"),
        AIMessage("In Kassel."),
        HumanMessage("Thanks. And the invoice?"),
    ]


def test_messages_of_langchain_stay_messages_of_langchain() -> None:
    messages = langchain_messages()
    fitted = cupel.fit(messages, 200)
    assert fitted.shape == "langchain"
    assert all(isinstance(message, BaseMessage) for message in fitted.messages)
    assert fitted.tokens_after <= 200 < fitted.tokens_before
    assert fitted.kept == [0, 1, 2, 3, 4, 5]
    [shortened] = fitted.shortened
    tool = fitted.messages[3]
    assert shortened["index"] == 3 and isinstance(tool, ToolMessage)
    assert tool is not messages[3] and tool.tool_call_id == "c1"
    assert len(str(tool.content)) < len(str(messages[3].content))
    assert all(fitted.messages[at] is messages[at] for at in (0, 1, 2, 4, 5))
    assert messages == langchain_messages()


def test_a_call_that_is_appended_to_a_message_of_langchain_is_seen() -> None:
    messages: list[BaseMessage] = [HumanMessage("What is the weather?")]
    for number in range(6):
        answer = AIMessage("Let me look that up. " * 5)
        call: Any = {"id": f"c{number}", "name": "weather", "args": {"city": "Bonn"}}
        answer.tool_calls.append(call)
        messages += [answer, ToolMessage("It is sunny. " * 60, tool_call_id=f"c{number}")]
    for budget in (200, 400, 600):
        kept = cupel.fit(messages, budget).kept
        calls = [index for index in kept if index % 2 == 1]
        assert [index + 1 for index in calls] == [it for it in kept if it > 0 and it % 2 == 0]


def test_fields_of_langchain_that_are_not_sent_may_hold_anything() -> None:
    result = ToolMessage(
        "r", tool_call_id="c", artifact=b"\xff", response_metadata={"raw": object()}
    )
    call: Any = {"id": "c", "name": "look", "args": {}}
    messages = [HumanMessage("task"), AIMessage("", tool_calls=[call]), result]
    plain = [*messages[:2], ToolMessage("r", tool_call_id="c")]
    assert cupel.count(messages) == cupel.count(plain)
    assert cupel.fit(messages, 1000).messages[2] is result
    odd = AIMessage("y", additional_kwargs={"raw": object()})
    with pytest.raises(cupel.InvalidInputError, match=r"messages\[1\]: cannot be written as JSON"):
        cupel.fit([messages[0], odd], 1000)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("marker", False),
        ("marker", 3),
        ("query", b"x"),
        ("model", 4),
        ("shorten", ["off"]),
        ("reserve", 2.5),
        ("pin", 2.0),
        ("pin", b"3"),
        ("strict", "False"),
        ("tools", "search"),
        ("budget", 2.5),
        ("tool_results", "keep"),
        ("tool_results", {"wait": None}),
    ],
)
def test_an_option_of_another_type_is_refused(option: str, value: Any) -> None:
    options: dict[str, Any] = {"budget": 1000, option: value}
    with pytest.raises(cupel.InvalidInputError, match=f"{option}: expected"):
        cupel.fit([{"role": "user", "content": "Hello!"}], **options)


def test_numbers_of_numpy_are_options() -> None:
    messages = [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi!"}]
    budget: Any = numpy.int64(1000)
    pin: Any = numpy.int64(1)
    fitted = cupel.fit(messages, budget, pin=pin)
    assert (fitted.kept, fitted.budget) == ([0, 1], 1000)


def test_a_fitted_chat_is_a_value_with_a_short_repr() -> None:
    chat = json.loads((ROOT / "examples/agent-session.json").read_text(encoding="utf-8"))
    fitted = cupel.fit(chat, "2k")
    assert repr(fitted) == "<cupel.Fitted: 21 of 44 messages, 1,882 of 5,869 tokens>"
    assert fitted == cupel.fit(chat, "2k") != cupel.fit(chat, "3k")


def test_a_class_is_not_a_tool() -> None:
    messages = [{"role": "user", "content": "Hello!"}]
    with pytest.raises(cupel.InvalidInputError, match=r"tools\[0\]: .* the class .*ToolMessage"):
        cupel.fit(messages, 1000, tools=[ToolMessage])


def test_tools_and_system_are_counted_and_never_dropped() -> None:
    messages = langchain_messages()
    plain = cupel.fit(messages, "10k")
    tools = SESSION["tools"]
    counted = cupel.fit(messages, "10k", tools=tools, system="You answer questions about parcels.")
    assert counted.tokens_after > plain.tokens_after + 50
    assert counted.kept == plain.kept
    assert len(counted.messages) == len(messages)
    with pytest.raises(cupel.OverBudgetError):
        cupel.fit(messages, 100, tools=tools)


def test_the_default_budget_is_the_window_of_the_model() -> None:
    fitted = cupel.fit(SESSION)
    # gpt-4o has a window of 128,000 tokens; the request reserves 4,096 for the answer.
    assert fitted.budget == 128_000 - SESSION["max_completion_tokens"]
    assert fitted.kept == list(range(44)) and not fitted.shortened


def test_pins_and_options_are_those_of_the_command() -> None:
    ran = run(
        "--json",
        "fit",
        "examples/agent-session.json",
        "--budget",
        "2k",
        "--pin",
        "5",
        "--no-keep-task",
    )
    expected = json.loads(ran.stdout)
    fitted = cupel.fit(SESSION, "2k", pin=[5], keep_task=False)
    assert fitted.kept == expected["kept"]
    ran = run(
        "--json", "fit", "examples/agent-session.json", "--budget", "2k", "--policy", "newest"
    )
    assert cupel.fit(SESSION, "2k", policy="newest").kept == json.loads(ran.stdout)["kept"]


def test_a_fitter_gives_the_same_windows_by_a_state(tmp_path: Path) -> None:
    messages = SESSION["messages"]
    session = cupel.Fitter(budget="2k", model="gpt-4o", policy="agent")
    state = tmp_path / "state.json"
    kept: list[list[int]] = []
    for end in (20, 30, 44):
        fitted = session.fit(messages[:end])
        by_file = cupel.fit(messages[:end], "2k", model="gpt-4o", policy="agent", state=state)
        assert fitted.kept == by_file.kept
        assert fitted.messages == by_file.messages
        kept.append(fitted.kept)
    assert fitted.reuse is not None and fitted.reuse["tokens"] > 0
    # The state moves to another process as text.
    again = cupel.Fitter(budget="2k", model="gpt-4o", policy="agent", state=session.state)
    assert again.fit(messages).messages == session.fit(messages).messages


def test_a_state_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "states"
    folder.mkdir()
    target, link = folder / "state.json", tmp_path / "link"
    link.symlink_to(target)
    cupel.fit(SESSION, "2k", state=link)
    first = target.read_text(encoding="utf-8")
    target.chmod(0o640)
    cupel.fit(SESSION["messages"][:30], "2k", model="gpt-4o", state=link)
    assert link.is_symlink() and target.read_text(encoding="utf-8") != first
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(folder.iterdir()) == [target]
    # A chat that does not fit leaves the state as it is.
    second = target.read_text(encoding="utf-8")
    with pytest.raises(cupel.OverBudgetError):
        cupel.fit(SESSION, 100, state=link)
    assert target.read_text(encoding="utf-8") == second


def test_a_state_that_cannot_be_read_or_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(cupel.InvalidInputError, match=r"^state: cannot read "):
        cupel.fit(SESSION, "2k", state=tmp_path)
    with pytest.raises(cupel.InvalidInputError, match=r"^state: cannot write "):
        cupel.fit(SESSION, "2k", state=tmp_path / "missing" / "state")
    file = tmp_path / "state"
    file.write_text("{}")
    with pytest.raises(cupel.InvalidInputError, match="delete the state to start again") as raised:
        cupel.fit(SESSION, "2k", state=file)
    assert raised.value.file == str(file)


def test_the_results_of_single_tools_are_treated_as_asked() -> None:
    plain = cupel.fit(SESSION, "2k")
    kept = cupel.fit(SESSION, "2k", tool_results={"run_tests": "keep"})
    assert kept.messages != plain.messages
    policy = {"extends": "agent", "chat": {"tool_results": {"run_tests": "keep"}}}
    by_policy = cupel.fit(SESSION, "2k", policy=policy)
    assert by_policy.messages == kept.messages
    # The setting of the call takes the place of that of the policy.
    assert cupel.fit(SESSION, "2k", policy=policy, tool_results={}).messages == plain.messages
    with pytest.warns(cupel.CupelWarning, match="tool_results= has no effect for `run_test`"):
        cupel.fit(SESSION, "2k", tool_results={"run_test": "keep"})


def test_a_removed_option_says_what_to_use() -> None:
    options: dict[str, Any] = {"step": 500}
    with pytest.raises(TypeError, match="'step': it was removed; use replay"):
        cupel.fit(SESSION, "2k", **options)


def test_an_unknown_option_is_a_type_error() -> None:
    calls: list[Any] = [cupel.fit, cupel.Fitter]
    for call in calls:
        text = "unexpected keyword argument 'shortn'; did you mean 'shorten'?"
        with pytest.raises(TypeError, match=re.escape(text)):
            call(SESSION, shortn="off")
        with pytest.raises(TypeError, match="'zzz'$"):
            call(SESSION, zzz="off")


def test_the_types_of_messages_are_kept() -> None:
    messages: list[BaseMessage] = langchain_messages()
    fitted: cupel.Fitted[BaseMessage] = cupel.fit(messages, 200)
    first: BaseMessage = fitted.messages[0]
    assert isinstance(first, SystemMessage)
    params: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
    assert cupel.fit(params, 100).messages[0] is params[0]


def test_the_page_of_a_session_explains_its_policy(tmp_path: Path) -> None:
    fitter = cupel.Fitter("2k")
    pages = [
        fitter.fit(SESSION).report.to_html(),
        cupel.fit(SESSION, "2k", state=tmp_path / "state").report.to_html(),
    ]
    assert pages[0] == pages[1]
    assert pages[0] == cupel.fit(SESSION, "2k").report.to_html()


def test_a_fitter_checks_its_options() -> None:
    faults: list[tuple[dict[str, Any], str]] = [
        ({"budget": "abc"}, r"^budget: invalid budget `abc`"),
        ({"budget": {"max": 1}}, r"^budget"),
        ({"budget": 100, "reserve": "x"}, r"^reserve: "),
        (
            {"budget": 100, "shorten": "some"},
            r"^shorten: unknown name `some`; expected one of off, old, all",
        ),
        ({"budget": 100, "policy": "agnet"}, r"agnet"),
        ({"budget": 100, "policy": "newest", "marker": "[cut]"}, r"^marker= needs a policy"),
    ]
    for options, text in faults:
        with pytest.raises(cupel.InvalidInputError, match=text):
            cupel.Fitter(**options)
    # The model of a request may come later.
    cupel.Fitter("50%")


def test_a_note_is_a_warning_at_the_line_of_the_caller() -> None:
    chat = [{"role": "user", "content": "Hello!"}]
    text = "query= has no effect: no scorer of the policy agent reads it"
    with pytest.warns(cupel.CupelWarning, match=text) as warned:
        cupel.fit(chat, 100, query="Hello?")
    assert warned[0].filename == __file__
    with pytest.warns(cupel.CupelWarning, match="query= has no effect") as warned:
        cupel.Fitter(100).fit(chat, query="Hello?")
    assert warned[0].filename == __file__


def test_a_session_of_no_messages_is_refused() -> None:
    for messages, got in [([], "an empty list"), ([{"content": "a"}], "a list of items")]:
        with pytest.raises(cupel.InvalidInputError) as raised:
            cupel.Fitter(100).fit(messages)
        assert str(raised.value) == f"a session needs a chat, and this is {got}"


def test_a_pickled_fitter_goes_on() -> None:
    fitter = cupel.Fitter("2k", model="gpt-4o", policy=cupel.Policy.preset("agent"))
    fitter.fit(SESSION["messages"][:30])
    again = pickle.loads(pickle.dumps(fitter))
    assert again.state == fitter.state
    found, expected = again.fit(SESSION["messages"]), fitter.fit(SESSION["messages"])
    assert (found.kept, found.reuse) == (expected.kept, expected.reuse)
    assert found.reuse is not None


def test_messages_of_langchain_are_not_mixed_with_others() -> None:
    mixed: list[Any] = [*langchain_messages(), {"role": "user", "content": "Hello!"}]
    with pytest.raises(cupel.InvalidInputError, match="expected a LangChain message") as raised:
        cupel.fit(mixed, "1k")
    assert raised.value.path == f"messages[{len(mixed) - 1}]"


def test_a_strategy_that_uses_its_own_fitter_is_an_error() -> None:
    fitter = cupel.Fitter("2k", policy=cupel.Policy(lambda items: [len(fitter.state)] * len(items)))
    with pytest.raises(cupel.InvalidInputError, match="fitting a chat already"):
        fitter.fit(SESSION)
    assert fitter.state


def test_a_budget_may_be_an_object_a_dict_or_a_string() -> None:
    expected = cupel.fit(SESSION, 2_000).kept
    for budget in ("2k", {"max_tokens": 2_000}, cupel.Budget(2_000)):
        assert cupel.fit(SESSION, budget).kept == expected
    reserved = cupel.fit(SESSION, cupel.Budget(2_500, output_reserve=500))
    assert reserved.budget == 2_000


def test_an_empty_list_pins_nothing() -> None:
    assert cupel.fit(SESSION, "2k", pin=[]).kept == cupel.fit(SESSION, "2k").kept


@pytest.mark.parametrize("message", [("user", "hi"), ["hi"], "hi", None, 5], ids=repr)
def test_what_is_not_a_message_is_named(message: Any) -> None:
    with pytest.raises(cupel.InvalidInputError, match="expected a message") as raised:
        cupel.fit([{"role": "user", "content": "hi"}, message], "1k")
    assert raised.value.path == "messages[1]"


def test_what_is_not_a_list_is_refused() -> None:
    values: list[Any] = [None, 5, "hello"]
    for value in values:
        with pytest.raises(cupel.InvalidInputError, match="expected a list of messages"):
            cupel.fit(value, "1k")


def test_keep_task_is_a_truth_value() -> None:
    with pytest.raises(cupel.InvalidInputError, match="True or False"):
        cupel.fit(SESSION, "2k", keep_task="no")  # type: ignore[call-overload]


def test_cache_breakpoints_are_set_on_copies() -> None:
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "12 degrees"}
    request: dict[str, Any] = {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    before = copy.deepcopy(request)
    fitted = cupel.fit(request, 1_000, cache_breakpoints=True)
    assert request == before
    mark = {"cache_control": {"type": "ephemeral"}}
    assert fitted.request == {
        "system": [{"type": "text", "text": "Be brief."} | mark],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Weather?"} | mark]},
            request["messages"][1],
            {"role": "user", "content": [result | mark]},
        ],
    }
    assert [(it["place"], it["index"], it["position"]) for it in fitted.cache_breakpoints] == [
        ("system", None, None),
        ("previous", 0, 0),
        ("end", 2, 2),
    ]
    bedrock = [{"role": "user", "content": [{"text": "Hi"}]}]
    alone = cupel.fit(bedrock, 1_000, cache_breakpoints=True, shape="bedrock")
    assert alone.messages == [
        {"role": "user", "content": [{"text": "Hi"}, {"cachePoint": {"type": "default"}}]}
    ]


def test_a_fitted_chat_can_be_pickled() -> None:
    fitted = cupel.fit(SESSION, "2k")
    again = pickle.loads(pickle.dumps(fitted))
    assert again == fitted
    assert b"cupel._fit" not in pickle.dumps(fitted)
    assert again.report.to_dict() == fitted.report.to_dict()
    assert again.report.included == fitted.report.included
    assert again.report.excluded == fitted.report.excluded
    assert again.report.to_arrow() == fitted.report.to_arrow()
    assert (repr(again), repr(again.report)) == (repr(fitted), repr(fitted.report))
    twice = pickle.loads(pickle.dumps(again))
    assert twice.report.to_dict() == fitted.report.to_dict()
    with pytest.raises(cupel.InvalidInputError, match=r"keep the text of to_html\(\)"):
        again.report.to_html()
    assert "<table>" in again._repr_html_()


def test_a_fitted_chat_is_a_dict_of_json() -> None:
    fitted = cupel.fit(SESSION, "2k")
    document = fitted.to_dict()
    assert json.loads(json.dumps(document)) == document
    assert document["messages"] == fitted.messages and document["kept"] == fitted.kept
    assert {it.name for it in dataclasses.fields(fitted)} - document.keys() == {"report", "request"}
    models = cupel.fit(langchain_messages(), 200)
    assert json.loads(json.dumps(models.to_dict()))["messages"][0]["type"] == "system"
    plain = dataclasses.asdict(fitted)
    assert plain["messages"] == fitted.messages and plain["messages"] is not fitted.messages


@pytest.mark.filterwarnings("error")
def test_a_forgotten_role_is_named() -> None:
    chats: list[Any] = [
        [{"content": "Hello!"}, {"content": "Hi."}],
        {"messages": [{"content": "Hello!"}]},
    ]
    for chat in chats:
        with pytest.raises(cupel.CupelWarning, match="position 0 has no `role`"):
            cupel.fit(chat, 100)
    mixed = [{"role": "user", "content": "Hello!"}, {"content": "Hi."}]
    with pytest.raises(cupel.InvalidInputError, match="an item") as raised:
        cupel.fit(mixed, 100)
    assert raised.value.path == "messages[1]"
    # Items that look like items, and a list that is said to be of items.
    cupel.fit([{"content": "Hello!", "tokens": 2}], 100)
    cupel.fit([{"content": "Hello!", "future_relevance_hint": 0.5}], 100, policy="rag")
    cupel.fit([{"content": "Hello!"}], 100, shape="items")


def test_one_message_is_not_a_chat() -> None:
    with pytest.raises(cupel.InvalidInputError, match="got one message"):
        cupel.fit({"role": "user", "content": "Hello!"}, 100)


@pytest.mark.parametrize("as_request", [False, True])
def test_another_thread_may_change_the_list(as_request: bool) -> None:
    messages = [*SESSION["messages"]]

    def score(items: list[cupel.Item]) -> list[float]:
        messages.clear()  # as another thread could while the engine runs
        return [1.0] * len(items)

    chat = {**SESSION, "messages": messages} if as_request else messages
    fitted = cupel.fit(chat, "100k", policy=cupel.Policy(score), model="gpt-4o")
    assert messages == [] and fitted.messages == SESSION["messages"]


def test_tables_are_refused_with_the_way_to_pass_their_rows() -> None:
    rows: list[Json] = [{"role": "user", "content": "Hello!"}]
    items = [{"content": "Hello!", "tokens": 2}]
    for make, advice in [
        (pandas.DataFrame, 'to_dict("records")'),
        (polars.DataFrame, "to_dicts()"),
        (pyarrow.Table.from_pylist, "to_pylist()"),
    ]:
        calls: list[Any] = [
            lambda make=make: cupel.fit(make(rows), 100),
            lambda make=make: cupel.fit([make(rows)], 100),
            lambda make=make: cupel.explain(make(rows), 100),
            lambda make=make: cupel.select(make(items), 100),
        ]
        for call in calls:
            with pytest.raises(cupel.InvalidInputError, match="expected a list, got") as raised:
                call()
            assert raised.value.help == f"pass its rows: {advice}"
    table = pandas.DataFrame(rows)
    assert cupel.fit(table.to_dict("records"), 100).kept == [0]


def test_what_json_cannot_hold_is_named() -> None:
    class Model(pydantic.BaseModel):
        role: str = "user"
        content: str = "Hello!"
        inner: Any = None

    model = Model(role="user", content="Hello!")
    model.inner = model
    itself: Json = {"role": "user", "content": "Hello!"}
    itself["inner"] = itself
    missing: Json = {"role": "user", "content": "Hello!", "timestamp": pandas.NaT}
    for message, path, text in [
        (model, "messages[0]", "cannot be written as JSON: Circular reference"),
        (itself, "messages[0].inner.inner", "nested more than 200 levels deep, or in itself"),
        (missing, "messages[0].timestamp", "NaT is not a time"),
    ]:
        with pytest.raises(cupel.InvalidInputError) as raised:
            cupel.fit([message], 100)
        assert text in raised.value.message
        assert str(raised.value.path).startswith(path) and len(str(raised.value)) < 300


def test_a_large_chat_is_a_table_in_a_notebook() -> None:
    small = cupel.fit(SESSION, "2k")._repr_html_()
    assert "<iframe" in small and len(small) <= 300_000
    roles = ["user", "assistant"]
    chat = [{"role": roles[i % 2], "content": f"message {i}"} for i in range(10_000)]
    fitted = cupel.fit(chat, "5k")
    large = fitted._repr_html_()
    assert len(large) <= 300_000 and "<iframe" not in large
    assert "of 10,000 included" in large and "the first 9,000 are not shown here" in large
    assert "report.to_html()" in large
    # The newest messages are shown, each with its outcome.
    assert large.count("<tr>") == 1 + 1_000 and "<td>9999</td><td>in</td>" in large
    assert "<td>9000</td>" in large and "<td>8999</td>" not in large
    items = [{"content": f"item {i}", "tokens": 5} for i in range(10_000)]
    assert "first 9,000" in cupel.select(items, 1_000)._repr_html_()


def test_a_table_says_how_to_get_the_page_with_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    items = [{"content": f"item {i} {'x' * 300}", "tokens": 5} for i in range(1_200)]
    chat = [{"role": ["user", "assistant"][i % 2], "content": f"{i} " * 100} for i in range(1_200)]
    shown: dict[str, Any] = {
        "selection": cupel.select(items, 1_000),
        "fitted": cupel.fit(chat, "5k"),
    }
    for name, result in shown.items():
        table = result._repr_html_()
        assert "the first 200 are not shown here" in table and len(table) <= 300_000
        [code] = re.findall("<code>(.*?)</code>", table)
        exec(code, {name: result})
        assert Path("why.html").read_text() == result.report.to_html()


def test_a_system_prompt_of_gemini_is_counted_as_a_text_or_a_content() -> None:
    chat = [{"role": "user", "parts": [{"text": "Hello!"}]}]
    forms: list[Any] = ["Be brief. " * 20, {"parts": [{"text": "Be brief. " * 20}]}]
    plain = cupel.fit(chat, 1000, shape="gemini").tokens_before
    text, content = (cupel.fit(chat, 1000, shape="gemini", system=it).tokens_before for it in forms)
    assert text == content > plain + 40
