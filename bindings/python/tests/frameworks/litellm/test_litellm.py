"""`cupel.litellm` in a running LiteLLM proxy, with a local server in the place of the providers."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import adapters
import cupel
import long_chat
from cupel.litellm import CupelHook

KEY = "sk-test"
BUDGET = 180
OLD = "old " * 200
TOOL = {"name": "weather", "description": "Returns the weather of a city."}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}

COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
CHUNK = {
    "id": "1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "gpt-4o",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi."}}],
}
MESSAGE = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-4o",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}
ANSWERS = {"/v1/chat/completions": COMPLETION, "/v1/messages": MESSAGE, "/v1/responses": RESPONSE}


class Provider(BaseHTTPRequestHandler):
    """Answers as the providers do and remembers the requests."""

    seen: list[dict[str, Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append(body)
        if body.get("stream"):
            kind, answer = "text/event-stream", f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n"
        else:
            kind, answer = "application/json", json.dumps(ANSWERS[self.path.split("?")[0]])
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Runs the proxy with the hook and returns its address."""
    folder: Path = tmp_path_factory.mktemp("proxy")
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{provider.server_port}"
    models = [
        ("gpt-4o", {"model": "openai/gpt-4o", "api_base": f"{upstream}/v1", "api_key": "x"}),
        ("claude", {"model": "anthropic/claude-sonnet-4-5", "api_base": upstream, "api_key": "x"}),
    ]
    config = {
        "model_list": [{"model_name": name, "litellm_params": params} for name, params in models],
        "litellm_settings": {"callbacks": "hook.hook"},
    }
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    (folder / "hook.py").write_text(
        "from cupel.litellm import CupelHook\n"
        f"hook = CupelHook(budget={BUDGET}, keep_task=False, shorten='off')\n"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as free:
        port = free.server_port
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [Path(sys.executable).with_name("litellm"), "--config", "config.yaml", "--port", str(port)],
        cwd=folder,
        env={**os.environ, "LITELLM_MASTER_KEY": KEY},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/health/liveliness", timeout=5)
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(1)
        yield address
    finally:
        process.terminate()
        process.wait()
        provider.shutdown()


def post(address: str, body: dict[str, Any]) -> tuple[int, str]:
    request = urllib.request.Request(
        address,
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {KEY}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def chat(last: str = "And now?") -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": OLD},
        {"role": "assistant", "content": OLD},
        {"role": "user", "content": last},
    ]


def function() -> dict[str, Any]:
    return {"type": "function", "function": {**TOOL, "parameters": SCHEMA}}


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"model": "gpt-4o", "messages": chat(), "tools": [function()]}),
    ("/v1/chat/completions", {"model": "gpt-4o", "messages": chat(), "stream": True}),
    ("/v1/messages", {"model": "claude", "max_tokens": 9, "messages": chat()}),
    ("/v1/responses", {"model": "gpt-4o", "input": chat()}),
]


@pytest.mark.parametrize(("route", "request_body"), REQUESTS)
def test_the_provider_gets_the_fitted_messages(
    proxy: str, route: str, request_body: dict[str, Any]
) -> None:
    Provider.seen.clear()
    status, answer = post(proxy + route, request_body)
    assert (status, "Hi." in answer) == (200, True), answer
    [sent] = Provider.seen
    key = "input" if "input" in request_body else "messages"
    texts = [json.dumps(message["content"]) for message in sent[key]]
    assert ["old" in text for text in texts] == [False] and "And now?" in texts[0]
    if "tools" in request_body:
        assert sent["tools"] == request_body["tools"]


@pytest.mark.parametrize(("route", "request_body"), REQUESTS)
def test_mandatory_messages_over_the_budget_are_answered_with_400(
    proxy: str, route: str, request_body: dict[str, Any]
) -> None:
    Provider.seen.clear()
    key = "input" if "input" in request_body else "messages"
    status, answer = post(proxy + route, {**request_body, key: chat("long " * 300)})
    assert status == 400, answer
    assert "mandatory messages need" in answer
    assert Provider.seen == []


def fitted(data: dict[str, Any], call_type: str, **options: Any) -> dict[str, Any]:
    hook = CupelHook(**options)
    return asyncio.run(hook.async_pre_call_hook(None, None, data, call_type))


def test_the_request_is_not_changed_and_kept_messages_are_its_own() -> None:
    messages = chat()
    data = {"model": "gpt-4o", "messages": messages, "metadata": {"object": object()}}
    new = fitted(data, "acompletion", budget=100, keep_task=False, shorten="off")
    assert new["messages"] == messages[2:] and new["messages"][0] is messages[2]
    assert data["messages"] is messages and messages == chat()
    assert new["metadata"] is data["metadata"]


def test_the_system_prompt_and_the_tools_are_counted() -> None:
    def smallest_budget(data: dict[str, Any], call_type: str) -> int:
        for budget in range(1, 300):
            try:
                fitted(data, call_type, budget=budget)
            except cupel.OverBudgetError:
                continue
            return budget
        raise AssertionError("no budget is enough")

    hi = [{"role": "user", "content": "Hi."}]
    flat = {"type": "function", **TOOL, "parameters": SCHEMA}
    for key, call_type, tool, system in [
        ("messages", "acompletion", function(), None),
        ("messages", "anthropic_messages", {**TOOL, "input_schema": SCHEMA}, "system"),
        ("input", "aresponses", flat, "instructions"),
    ]:
        plain = smallest_budget({"model": "gpt-4o", key: hi}, call_type)
        with_tool = smallest_budget({"model": "gpt-4o", key: hi, "tools": [tool]}, call_type)
        assert with_tool > plain + 20
        if system:
            data = {"model": "gpt-4o", key: hi, system: "Always be brief." * 10}
            assert smallest_budget(data, call_type) > plain + 30


def test_tool_pairs_stay_whole() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    step = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "cloudy " * 50},
    ]
    messages = [chat()[0], *step, *chat()[1:]]
    for budget in range(150, 600, 30):
        data = {"model": "gpt-4o", "messages": messages}
        new = fitted(data, "acompletion", budget=budget, keep_task=False)
        roles = [m["role"] for m in new["messages"]]
        assert roles.count("tool") == sum(
            a == "assistant" and b == "tool" for a, b in zip(roles, roles[1:], strict=False)
        )


def test_other_calls_pass() -> None:
    data = {"model": "e", "input": ["a " * 500]}
    assert fitted(data, "aembedding", budget=10) is data
    data = {"model": "gpt-4o", "input": "A text. " * 500}
    assert fitted(data, "aresponses", budget=10) is data


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    reuse = long_chat.Reuse()
    hook = CupelHook(budget=long_chat.BUDGET)

    async def main() -> None:
        for messages in long_chat.requests():
            # The proxy reads each request from its body: no object is the same in two requests.
            data = {"model": long_chat.MODEL, "messages": copy.deepcopy(messages)}
            new = await hook.async_pre_call_hook(None, None, data, "acompletion")
            reuse.add(long_chat.as_json(new["messages"]))

    asyncio.run(main())
    reuse.check("LiteLLM, CupelHook")


def test_the_example_of_the_documentation_runs() -> None:
    hook = adapters.run_example("LiteLLM", {})["hook"]
    messages = [*chat(), {"role": "assistant", "content": adapters.OLD}, *chat()]
    data = {"model": "gpt-4o", "messages": messages}
    new = asyncio.run(hook.async_pre_call_hook(None, None, data, "acompletion"))
    assert adapters.OLD not in [m["content"] for m in new["messages"]]
    assert new["messages"][-1] is messages[-1]


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("litellm")


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(CupelHook, own="on_fit")
    with pytest.raises(cupel.InvalidInputError, match="on_error: expected 'raise' or 'pass'"):
        CupelHook(on_error="ignore")  # type: ignore[arg-type]


def test_the_callback_gets_each_window() -> None:
    seen: list[cupel.Fitted[Any]] = []
    data = {"model": "gpt-4o", "messages": chat()}
    new = fitted(data, "acompletion", budget=100, keep_task=False, on_fit=seen.append)
    assert [it.messages for it in seen] == [new["messages"]]


# Requests that cannot be fitted, for different reasons.
UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"messages": chat("long " * 300)}, "mandatory messages need"),
    ({"messages": [*chat(), {"role": "critic", "content": "No."}]}, "unknown role"),
    ({"messages": [*chat(), {"role": "user", "content": 5}]}, "content"),
    ({"messages": chat(), "max_tokens": "many"}, "max_tokens"),
]


@pytest.mark.parametrize(("fields", "text"), UNFIT)
def test_every_error_has_status_400_or_passes(
    fields: dict[str, Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    data = {"model": "gpt-4o", **fields}
    with pytest.raises(cupel.CupelError, match=text) as raised:
        fitted(data, "acompletion", budget=BUDGET)
    assert raised.value.status_code == 400  # type: ignore[attr-defined]
    assert fitted(data, "acompletion", budget=BUDGET, on_error="pass") is data
    [record] = caplog.records
    assert (record.name, record.levelname) == ("cupel", "WARNING")
    assert "is sent as it is" in record.message and text in record.message


@pytest.mark.parametrize(("fields", "text"), UNFIT)
def test_the_proxy_answers_every_error_with_400(
    proxy: str, fields: dict[str, Any], text: str
) -> None:
    Provider.seen.clear()
    status, answer = post(proxy + "/v1/chat/completions", {"model": "gpt-4o", **fields})
    assert (status, text in answer) == (400, True), answer
    assert Provider.seen == []


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.litellm")
