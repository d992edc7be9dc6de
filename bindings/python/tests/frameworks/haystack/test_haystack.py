"""The example of docs/python-frameworks.md for Haystack."""

from __future__ import annotations

from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage, ToolCall

import adapters
import cupel
import long_chat


@component
class Offline:
    """Answers and remembers the messages that it was sent."""

    def __init__(self) -> None:
        self.seen: list[list[ChatMessage]] = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        self.seen.append(messages)
        return {"replies": [ChatMessage.from_assistant("It is sunny.")]}


def test_the_model_gets_the_window_of_the_history() -> None:
    call = ToolCall(tool_name="weather", arguments={"city": "Rome"}, id="1")
    history = [
        ChatMessage.from_system("Be brief."),
        ChatMessage.from_user("What is the weather in Rome?"),
        ChatMessage.from_assistant(tool_calls=[call]),
        ChatMessage.from_tool("sunny", origin=call),
        ChatMessage.from_assistant(adapters.OLD),
    ]
    model = Offline()
    names = adapters.run_example("Haystack", {"model": model, "history": history})
    assert names["result"]["model"]["replies"][0].text == "It is sunny."
    [sent] = model.seen
    assert [message.role.value for message in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert sent[:4] == history[:4]


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Offline()
    pipeline = adapters.run_example("Haystack", {"model": model, "history": []})["pipeline"]
    reuse = long_chat.Reuse()
    for messages in long_chat.requests():
        chat = [ChatMessage.from_openai_dict_format(message) for message in messages]
        pipeline.run({"fit": {"messages": chat}})
        reuse.add(long_chat.as_json([message.to_dict() for message in model.seen[-1]]))
    reuse.check("Haystack, example")


def test_select_takes_documents() -> None:
    documents = [Document(content=f"text {n}", score=score) for n, score in enumerate((3, 9, 5))]
    selection = cupel.select(documents, 6, counter=lambda text: 3)
    assert {id(it) for it in selection.items} == {id(documents[1]), id(documents[2])}
