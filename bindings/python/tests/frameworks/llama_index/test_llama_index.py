"""`cupel.llama_index` in LlamaIndex with offline models."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms import LLMMetadata, MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool

import adapters
import cupel
import long_chat
from cupel.llama_index import CupelMemory, CupelPostprocessor

LONG = "\n".join(f"line {i}: cloudy" for i in range(60))


class Offline(FunctionCallingLLM):
    """Calls the tool once, then answers; remembers the messages that it was sent."""

    seen: list[list[ChatMessage]] = []

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def _answer(self, messages: Any) -> ChatResponse:
        self.seen.append(list(messages))
        if messages[-1].role == "tool":
            return ChatResponse(message=ChatMessage(role="assistant", content="It is sunny."))
        call = ToolCallBlock(tool_call_id="new", tool_name="weather", tool_kwargs={"city": "Bonn"})
        return ChatResponse(message=ChatMessage(role="assistant", blocks=[call]))

    def _prepare_chat_with_tools(self, tools: Any, **kwargs: Any) -> dict[str, Any]:
        return {"messages": kwargs.get("chat_history") or []}

    def get_tool_calls_from_response(self, response: Any, **kwargs: Any) -> list[ToolSelection]:
        blocks = [b for b in response.message.blocks if isinstance(b, ToolCallBlock)]
        return [
            ToolSelection(tool_id=b.tool_call_id, tool_name=b.tool_name, tool_kwargs=b.tool_kwargs)
            for b in blocks
        ]

    async def achat_with_tools(self, tools: Any, **kwargs: Any) -> ChatResponse:
        return self._answer(kwargs["chat_history"])

    async def astream_chat_with_tools(self, tools: Any, **kwargs: Any) -> Any:
        async def stream() -> Any:
            yield self._answer(kwargs["chat_history"])

        return stream()

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return self._answer(messages)

    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return self._answer(messages)

    def stream_chat(self, messages: Any, **kwargs: Any) -> Any:
        yield self._answer(messages)

    async def astream_chat(self, messages: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    acomplete = stream_complete = astream_complete = complete


def weather(city: str) -> str:
    """Returns the weather of a city."""
    return "sunny"


def call(id: str, result: str, old_form: bool = False) -> list[ChatMessage]:
    """Returns a call and its result, in the form of blocks or of older integrations."""
    if old_form:
        function = {"name": "weather", "arguments": json.dumps({"city": "Oslo"})}
        calls = [{"id": id, "type": "function", "function": function}]
        first = ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": calls})
    else:
        block = ToolCallBlock(tool_call_id=id, tool_name="weather", tool_kwargs={"city": "Rome"})
        first = ChatMessage(role="assistant", blocks=[block])
    second = ChatMessage(role="tool", content=result, additional_kwargs={"tool_call_id": id})
    return [first, second]


def history() -> list[ChatMessage]:
    return [
        ChatMessage(role="user", content="first " * 60),
        *call("c0", LONG),
        ChatMessage(role="assistant", content="It is cloudy. " * 20),
        ChatMessage(role="user", content="And in Oslo?"),
        *call("c1", "snow", old_form=True),
        ChatMessage(role="assistant", content="It snows."),
    ]


def memory(messages: list[ChatMessage], **options: Any) -> CupelMemory:
    created = CupelMemory.from_defaults(**options)
    created.put_messages(messages)
    return created


QUESTION = ChatMessage(role="user", content="And in Bonn?")
OFF = {"policy": "single", "keep_task": False, "shorten": "off"}


@pytest.mark.parametrize("is_async", [False, True])
def test_the_memory_returns_what_fits_and_keeps_all(is_async: bool) -> None:
    stored = memory([*history(), QUESTION], budget=120, options=OFF)
    window = asyncio.run(stored.aget()) if is_async else stored.get()
    assert window == [*history()[4:], QUESTION]
    assert stored.get_all() == [*history(), QUESTION]


def test_an_empty_memory_returns_nothing() -> None:
    assert CupelMemory.from_defaults(budget=10).get() == []


def test_shortened_messages_are_copies() -> None:
    stored = memory([*history(), QUESTION], budget=380, options={"keep_task": False})
    results = [m for m in stored.get() if m.role == "tool"]
    assert [m.additional_kwargs["tool_call_id"] for m in results] == ["c0", "c1"]
    assert len(results[0].content or "") < len(LONG)
    assert stored.get_all() == [*history(), QUESTION]


def test_an_agent_sends_the_fitted_messages() -> None:
    model = Offline(seen=[])
    tool = FunctionTool.from_defaults(weather)
    stored = memory(history(), budget=200, system="Be brief.", tools=[tool], options=OFF)
    agent = FunctionAgent(tools=[tool], llm=model, system_prompt="Be brief.", streaming=False)

    async def run() -> Any:
        return await agent.run("And in Bonn?", memory=stored)

    assert "sunny" in str(asyncio.run(run()))
    assert [m.role.value for m in model.seen[0]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert stored.get_all()[: len(history())] == history()
    assert len(stored.get_all()) == len(history()) + 4


def smallest_budget(**options: Any) -> int:
    for budget in range(1, 400):
        try:
            memory([QUESTION], budget=budget, **options).get()
        except cupel.OverBudgetError:
            continue
        return budget
    raise AssertionError("no budget is enough")


def test_the_system_prompt_and_the_tools_are_counted() -> None:
    plain = smallest_budget(system="Be brief.")
    assert smallest_budget(system="Be brief." + " Always." * 20) - plain == 40
    tools = [FunctionTool.from_defaults(weather)]
    assert smallest_budget(system="Be brief.", tools=tools) > plain + 20


@pytest.mark.parametrize("is_async", [False, True])
def test_mandatory_messages_over_the_budget_raise(is_async: bool) -> None:
    stored = memory([QUESTION], budget=3)
    with pytest.raises(cupel.OverBudgetError):
        asyncio.run(stored.aget()) if is_async else stored.get()


@pytest.mark.parametrize("budget", range(120, 700, 40))
def test_calls_stay_with_their_results(budget: int) -> None:
    window = memory([*history(), QUESTION], budget=budget, options={"keep_task": False}).get()
    calls = [
        *(b.tool_call_id for m in window for b in m.blocks if isinstance(b, ToolCallBlock)),
        *(c["id"] for m in window for c in m.additional_kwargs.get("tool_calls", [])),
    ]
    assert calls == [m.additional_kwargs["tool_call_id"] for m in window if m.role == "tool"]


def test_images_and_thinking_are_read() -> None:
    blocks = [
        TextBlock(text="Look:"),
        ImageBlock(url="https://example.com/cat.png"),
        ThinkingBlock(content="A cat."),
    ]
    stored = memory([ChatMessage(role="user", blocks=blocks), QUESTION], budget=5000)
    assert stored.get() == stored.get_all()


def nodes() -> list[NodeWithScore]:
    texts = [f"Document {i}. " + "word " * 20 for i in range(5)]
    return [
        NodeWithScore(node=TextNode(text=text), score=score)
        for text, score in zip(texts, [0.1, 0.9, 0.3, 8.0, None], strict=True)
    ]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_postprocessor_selects_the_best_nodes_that_fit(is_async: bool) -> None:
    given = nodes()
    processor = CupelPostprocessor(budget=70)
    if is_async:
        kept = asyncio.run(processor.apostprocess_nodes(given, query_str="word?"))
    else:
        kept = processor.postprocess_nodes(given, query_str="word?")
    assert sorted(id(node) for node in kept) == sorted([id(given[1]), id(given[3])])
    assert len(given) == 5
    assert CupelPostprocessor(budget=70).postprocess_nodes([]) == []


def test_a_query_engine_synthesizes_from_the_selected_nodes() -> None:
    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return nodes()

    engine = RetrieverQueryEngine.from_args(
        Fixed(), llm=MockLLM(), node_postprocessors=[CupelPostprocessor(budget=70)]
    )
    assert {n.score for n in engine.query("word?").source_nodes} == {0.9, 8.0}


class Reviewer(Offline):
    """Calls both tools, then answers, in each turn."""

    reuse: Any = None

    def _answer(self, messages: Any) -> ChatResponse:
        turn, step = divmod(self.reuse.calls, 2)
        self.reuse.add(
            long_chat.as_json([message.model_dump(exclude_defaults=True) for message in messages])
        )
        if step:
            return ChatResponse(
                message=ChatMessage(role="assistant", content=long_chat.answer(turn))
            )
        calls = [long_chat.call(turn, name) for name in ("read", "search")]
        blocks = [
            ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs=arguments)
            for id, name, arguments in calls
        ]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks))


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Reviewer(reuse=long_chat.Reuse())
    tools = [
        FunctionTool.from_defaults(function, name=function.__name__)
        for function in long_chat.tools()
    ]
    stored = CupelMemory.from_defaults(
        budget=long_chat.BUDGET,
        system=long_chat.SYSTEM,
        tools=tools,
        options={"model": long_chat.MODEL},
    )
    agent = FunctionAgent(tools=tools, llm=model, system_prompt=long_chat.SYSTEM, streaming=False)

    async def main() -> None:
        for turn in range(long_chat.TURNS):
            await agent.run(long_chat.question(turn), memory=stored)

    asyncio.run(main())
    model.reuse.check("LlamaIndex, CupelMemory")


def test_the_examples_of_the_documentation_run() -> None:
    model = Offline(seen=[])
    old = [*history(), ChatMessage(role="assistant", content=adapters.OLD)]
    tool = FunctionTool.from_defaults(weather)
    names = adapters.run_example("LlamaIndex", {"model": model, "weather": tool, "history": old})
    assert "sunny" in str(asyncio.run(names["main"]()))
    contents = [message.content for message in model.seen[0]]
    assert contents[-1] == adapters.QUESTION and adapters.OLD not in contents
    assert names["memory"].get_all()[: len(old)] == old
    assert len(adapters.run_example("LlamaIndex", {"nodes": nodes()}, block=1)["window"]) == 5


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("llama_index")


def test_wrong_options_are_refused_when_it_is_made() -> None:
    def make(budget: Any, on_fit: Any = None, **options: Any) -> CupelMemory:
        return CupelMemory.from_defaults(budget=budget, on_fit=on_fit, options=options)

    adapters.check_options(make)
    for options, text in [
        ({"budget": "8kk"}, "invalid budget `8kk`"),
        ({"policy": "rga"}, "did you mean `rag`?"),
        ({"on_fit": "print"}, "expected a function"),
    ]:
        with pytest.raises(cupel.InvalidInputError, match=re.escape(text)):
            CupelPostprocessor(**{"budget": 100, **options})


@pytest.mark.parametrize("is_async", [False, True])
def test_the_callbacks_get_each_window(is_async: bool) -> None:
    seen: list[Any] = []
    stored = memory([*history(), QUESTION], budget=380, on_fit=seen.append)
    window = asyncio.run(stored.aget()) if is_async else stored.get()
    assert [len(fitted.messages) for fitted in seen] == [len(window)]
    kept = CupelPostprocessor(budget=70, on_fit=seen.append).postprocess_nodes(nodes())
    assert len(seen[1].indices) == len(kept) > 0


def scored(*scores: float | None) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=f"passage {i} " + "word " * 20), score=score)
        for i, score in enumerate(scores)
    ]


def test_a_policy_that_reads_the_query_gets_it() -> None:
    texts = ["The keys are on the fridge. " * 4, "It rains in Rome. " * 4, "A story. " * 8]
    given = [NodeWithScore(node=TextNode(text=text)) for text in texts]
    policies: list[Any] = [
        cupel.Policy("relevance", "rank"),
        {"scorer": {"type": "relevance"}, "slicer": {"type": "rank"}},
    ]
    for policy in policies:
        processor = CupelPostprocessor(budget=40, policy=policy)
        kept = processor.postprocess_nodes(given, query_str="Where are my keys?")
        assert [node.text for node in kept] == texts[:1]


@pytest.mark.filterwarnings("error::cupel.CupelWarning")
@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([0.1, 0.9, 0.5, 0.7], {0.9, 0.7}),
        ([1.2, 12.3, 5.0, 7.7], {12.3, 7.7}),
        ([-5.0, -1.0, -3.0, -0.5], {-0.5, -1.0}),
        ([-8.0, -2.0, -4.0, -9.0], {-2.0, -4.0}),
        ([-0.2, 0.9, 12.0, float("inf")], {12.0, float("inf")}),
        ([None, float("nan"), 0.4, 0.5], {0.4, 0.5}),
        ([None, -7.0, None, -6.0], {-7.0, -6.0}),
    ],
)
def test_nodes_are_ranked_by_any_scores(scores: list[float | None], best: set[float]) -> None:
    kept = CupelPostprocessor(budget=55).postprocess_nodes(scored(*scores), query_str="q")
    assert {node.score for node in kept} == best


def test_select_takes_nodes_as_the_postprocessor_does() -> None:
    given = scored(-5.0, -1.0, -3.0, -0.5)
    kept = CupelPostprocessor(budget=70).postprocess_nodes(given)
    assert [id(node) for node in cupel.select(given, 70).items] == [id(node) for node in kept]
    # The text with the metadata that a model reads.
    node = TextNode(text="a", metadata={"file": "b.md"})
    item = cupel.Items([NodeWithScore(node=node, score=0.5)])[0]
    assert (item.content, item.metadata) == ("file: b.md\n\na", {"file": "b.md"})
    assert cupel.Items([node])[0].content == item.content


def test_the_postprocessor_counts_with_a_function() -> None:
    given = scored(0.1, 0.9, 0.5)
    one = len(given[0].node.get_content())
    kept = CupelPostprocessor(budget=one, counter=len).postprocess_nodes(given)
    assert [node.score for node in kept] == [0.9]
    with pytest.raises(cupel.InvalidInputError, match="counter: expected a function"):
        CupelPostprocessor(budget=70, counter="o200k")  # type: ignore[arg-type]


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.llama_index")
