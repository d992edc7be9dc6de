"""`select` over the documents of frameworks, strings and dicts with an id."""

from __future__ import annotations

import dataclasses
import sys
import types
import warnings
from typing import Any

import numpy
import pytest
from langchain_core.documents import Document

import cupel

BUDGET = 9
"""Room for two of three texts of four tokens."""

TEXTS = ["the first of them", "the second of them", "the third of them"]


@dataclasses.dataclass
class HaystackDocument:
    """The fields of haystack.Document that matter."""

    id: str
    content: str | None
    score: float | None = None
    meta: dict[str, Any] = dataclasses.field(default_factory=dict)


class Node:
    def __init__(self, text: str, metadata: dict[str, Any] | None = None) -> None:
        self.text, self.metadata = text, metadata or {}

    def get_content(self, metadata_mode: object = None) -> str:
        return self.text if metadata_mode != "llm" else f"shown: {self.text}"


class NodeWithScore:
    """The fields of llama_index.core.schema.NodeWithScore."""

    def __init__(self, node: Node, score: float | None) -> None:
        self.node, self.score = node, score

    def get_content(self, metadata_mode: object = None) -> str:
        return self.node.get_content(metadata_mode)


def kept(documents: list[Any], **options: Any) -> list[int]:
    """Returns the positions of the documents that are selected, which are the caller's objects."""
    selection = cupel.select(documents, BUDGET, **options)
    assert [id(it) for it in selection.items] == [id(documents[i]) for i in selection.indices]
    assert cupel.select_index(documents, BUDGET, **options) == selection.indices
    return sorted(selection.indices)


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ((0.1, 0.9, 0.5), [1, 2]),
        ((12.5, 1.2, 7.7), [0, 2]),
        ((-5.0, -1.0, -3.0), [1, 2]),
        ((None, -1.0, -3.0), [1, 2]),
        ((float("nan"), -1.0, -3.0), [1, 2]),
        ((float("-inf"), -1.0, float("inf")), [1, 2]),
        ((numpy.float32(3), numpy.float32(1), numpy.float32(2)), [0, 2]),
    ],
)
def test_the_best_scores_stay_whatever_their_scale(scores: Any, best: list[int]) -> None:
    pairs = list(zip(TEXTS, scores, strict=True))
    assert kept([NodeWithScore(Node(text), score) for text, score in pairs]) == best
    assert kept([HaystackDocument(text, text, score) for text, score in pairs]) == best
    assert kept([{"id": i, "text": text, "score": s} for i, (text, s) in enumerate(pairs)]) == best
    reranked = [Document(text, metadata={"relevance_score": score}) for text, score in pairs]
    assert kept(reranked) == best
    if None not in scores:
        assert kept([(Document(text), score) for text, score in pairs]) == best
        assert kept([(text, score) for text, score in pairs]) == best


def test_documents_without_scores_stay_in_their_order() -> None:
    for documents in (
        [Document(text) for text in TEXTS],
        [Node(text) for text in TEXTS],
        [HaystackDocument(text, text) for text in TEXTS],
        [{"id": text, "content": text} for text in TEXTS],
        TEXTS,
    ):
        assert kept(documents, policy="rag") == [0, 1]


def test_documents_with_scores_have_a_policy_that_reads_them() -> None:
    pairs = zip(TEXTS, (3, 1, 2), strict=True)
    documents = [NodeWithScore(Node(text), score) for text, score in pairs]
    assert kept(documents) == kept(documents, policy="rag") == [0, 2]
    # They have no times, of which the default for other items would warn.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cupel.select(documents, BUDGET)


def test_tokens_are_counted_if_they_are_missing() -> None:
    items: list[Any] = [*TEXTS, {"id": "a", "content": "x", "tokens": 70}]
    assert [item.tokens for item in cupel.Items(items)] == [4, 4, 4, 70]
    assert [item.tokens for item in cupel.Items(items, counter=len)] == [17, 18, 17, 70]


def test_a_hint_of_a_dict_is_not_replaced() -> None:
    items = [
        {"id": "a", "content": TEXTS[0], "future_relevance_hint": 0.7, "score": -3},
        {"id": "b", "content": TEXTS[1], "score": -4},
    ]
    assert [item.future_relevance_hint for item in cupel.Items(items)] == [0.7, 0.5]


def test_documents_are_of_kind_document_with_their_texts_and_numbers_as_metadata() -> None:
    metadata = {"source": "a.md", "page": 3, "cupel:trust": 0.9, "is_old": True, "parts": ["x"]}
    for document in (Document("a", metadata=metadata), HaystackDocument("1", "a", 0.5, metadata)):
        item = cupel.Items([document])[0]
        assert item.kind == "Document"
        assert item.metadata == {"source": "a.md", "page": "3", "cupel:trust": "0.9"}


def test_a_node_has_the_text_that_a_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    schema: Any = types.ModuleType("llama_index.core.schema")
    schema.MetadataMode = types.SimpleNamespace(LLM="llm")
    monkeypatch.setitem(sys.modules, "llama_index.core.schema", schema)
    assert cupel.Items([NodeWithScore(Node("a"), 1.0)])[0].content == "shown: a"


def test_documents_and_items_can_be_mixed() -> None:
    items = [{"content": "an item", "tokens": 3}, "a string", Document("a document")]
    assert [item.content for item in cupel.Items(items)] == ["an item", "a string", "a document"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([HaystackDocument("1", None)], "items[0]: expected a HaystackDocument with a text"),
        (["a", {"id": 1}], "items[1]"),
        (["a", {"id": 1, "text": "a", "source_page": 3}], "items[1]"),
        (["a", 3], "items[1]"),
        (["a", ("a", "b")], "items[1]"),
    ],
)
def test_what_is_no_document_is_an_error_with_its_place(documents: Any, message: str) -> None:
    with pytest.raises(cupel.InvalidInputError) as caught:
        cupel.select(documents, 10)
    assert str(caught.value).startswith(message)


def test_no_framework_is_imported() -> None:
    import subprocess

    code = (
        "import sys, cupel; cupel.select(['a', {'id': 1, 'text': 'b', 'score': 3}], 10);"
        "print([m for m in ('langchain_core', 'llama_index', 'haystack') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout == "[]\n", printed.stderr
