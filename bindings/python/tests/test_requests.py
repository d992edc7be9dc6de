"""Requests as callers hand them to the clients of the providers."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel

import cupel
import long_chat


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: float


MESSAGES = list(long_chat.requests(5))[-1]
ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}}
    ],
}


def arguments(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": MESSAGES, **more}


def test_the_client_of_openai_takes_the_fitted_request() -> None:
    sent: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json=ANSWER)

    client = openai.OpenAI(
        api_key="x", http_client=httpx2.Client(transport=httpx2.MockTransport(answer))
    )
    given = arguments(
        temperature=openai.omit,
        tools=openai.NOT_GIVEN,
        max_tokens=openai.omit,
        timeout=httpx2.Timeout(5),
        extra_headers={"x-id": openai.omit},
        metadata={"run": "7"},
    )
    request = cupel.fit(given, "3k").request
    assert request is not None and request["timeout"] is given["timeout"]
    client.chat.completions.create(**request)
    [body] = sent
    assert body["messages"] == cupel.fit(arguments(), "3k").messages
    assert body.keys() == {"model", "messages", "metadata"}


def test_the_client_of_anthropic_takes_the_fitted_request() -> None:
    sent: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        content = [{"type": "text", "text": "Hi."}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "1", "type": "message", "role": "assistant", "model": "c"}
        return httpx2.Response(200, json={**message, "content": content, "usage": usage})

    client = anthropic.Anthropic(
        api_key="x", http_client=httpx2.Client(transport=httpx2.MockTransport(answer))
    )
    messages = [
        {"role": "user", "content": "old " * 500},
        {"role": "assistant", "content": "old " * 500},
        {"role": "user", "content": "And now?"},
    ]
    given: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": messages,
        "system": anthropic.omit,
        "tools": anthropic.NOT_GIVEN,
        "timeout": httpx2.Timeout(5),
    }
    request = cupel.fit(given, 300, keep_task=False, shorten="off", marker="off").request
    assert request is not None
    client.messages.create(**request)
    assert [message["content"] for message in sent[0]["messages"]] == ["And now?"]


def test_the_class_of_an_answer_is_counted_by_its_schema() -> None:
    def tokens(**more: Any) -> int:
        return cupel.fit(arguments(**more), "100k").tokens_before

    schema = Weather.model_json_schema()
    with_class = tokens(response_format=Weather)
    assert with_class == tokens(response_format=schema)
    wrapped = {"type": "json_schema", "json_schema": {"name": "Weather", "schema": schema}}
    assert with_class == tokens(response_format=wrapped)
    text = json.dumps(schema, separators=(",", ":"))
    assert with_class - tokens() == cupel.count(text) + 4
    fitted = cupel.fit(arguments(response_format=Weather), "3k")
    assert fitted.request is not None and fitted.request["response_format"] is Weather


def test_a_value_that_is_counted_must_be_readable() -> None:
    for field, value in [("tools", [object()]), ("response_format", int), ("max_tokens", 1j)]:
        with pytest.raises(cupel.InvalidInputError) as raised:
            cupel.fit(arguments(**{field: value}), "3k")
        assert str(raised.value.path).startswith(f"messages.{field}")


def test_other_questions_read_such_requests_too() -> None:
    given = arguments(temperature=openai.omit, timeout=httpx2.Timeout(5))
    assert cupel.count(given) == cupel.count(arguments())
    assert cupel.explain(given, "3k") == cupel.explain(arguments(), "3k")
    inner = {"messages": "none", "mine": {"messages": MESSAGES}}
    assert cupel.explain(inner, "3k", at="/mine/messages")["candidates"]


def test_a_request_of_items_keeps_its_fields() -> None:
    items = [{"content": "a", "tokens": 5}, {"content": "b", "tokens": 5}]
    policy = {"scorer": {"type": "reflexive"}}
    answer = cupel.explain({"items": items, "budget": {"max_tokens": 5}, "policy": policy})
    assert answer["budget"]["max_tokens"] == 5
