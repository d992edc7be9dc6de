"""Documents of frameworks, strings and hits of a search as items: for ``select`` and its kind.

No framework is imported: a document is known by its attributes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

from cupel import _cupel
from cupel._errors import InvalidInputError


class _Document(NamedTuple):
    item: dict[str, Any]
    score: float | None = None
    has_score: bool = False


def as_items(objects: list[Any]) -> tuple[list[Any], bool] | None:
    """Returns a list with items in the place of documents, and whether one has a score.

    None if the list has no documents. Scores become hints, ranked together.
    """
    found = [_document(it, f"items[{index}]") for index, it in enumerate(objects)]
    documents = [it for it in found if it is not None]
    if not documents:
        return None
    has_scores = any(it.score is not None for it in documents)
    if has_scores:
        scored = [it for it in documents if it.has_score]
        hints = _cupel.hints_of_scores([it.score for it in scored])
        for document, hint in zip(scored, hints, strict=True):
            # A hint of the caller is one already.
            document.item.setdefault("future_relevance_hint", hint)
    items = [
        it if document is None else document.item
        for it, document in zip(objects, found, strict=True)
    ]
    return items, has_scores


def _document(value: Any, path: str) -> _Document | None:
    """Returns what a document is as an item; None for a value that is no document."""
    if isinstance(value, str):
        return _Document({"content": value})
    if isinstance(value, Mapping):
        return _hit(value) if "id" in value else None
    if isinstance(value, (tuple, list)):
        # What `similarity_search_with_score` of LangChain returns.
        if len(value) != 2 or not _is_number(value[1]):
            return None
        document = _document(value[0], f"{path}[0]")
        return document and document._replace(score=_number(value[1]), has_score=True)
    if hasattr(value, "page_content"):  # LangChain
        metadata = _metadata(value)
        score = metadata.get("relevance_score")  # of its rerankers
        return _of(value, value.page_content, metadata, score, path)
    if hasattr(value, "get_content"):  # LlamaIndex: a node, or one with a score
        node = getattr(value, "node", value)
        return _of(value, _node_text(value), _metadata(node), getattr(value, "score", None), path)
    if hasattr(value, "content") and hasattr(value, "score") and hasattr(value, "id"):  # Haystack
        return _of(value, value.content, getattr(value, "meta", None), value.score, path)
    return None


def _of(value: Any, content: Any, metadata: Any, score: Any, path: str) -> _Document:
    if not isinstance(content, str):
        kind, got = type(value).__name__, type(content).__name__
        raise InvalidInputError(f"expected a {kind} with a text, got {got}", path=path)
    item: dict[str, Any] = {"content": content, "kind": "Document"}
    # Values of items are texts; the document itself comes back with all.
    texts = {
        str(key): str(it)
        for key, it in (metadata.items() if isinstance(metadata, Mapping) else ())
        if isinstance(it, (str, int, float)) and not isinstance(it, bool)
    }
    if texts:
        item["metadata"] = texts
    return _Document(item, _number(score), True)


def _hit(fields: Mapping[str, Any]) -> _Document:
    """Returns the item of a dict with an `id`, such as the hit of a vector store."""
    item = {key: it for key, it in fields.items() if key not in ("id", "score")}
    if "content" not in item and "text" in item:
        item["content"] = item.pop("text")
    return _Document(item, _number(fields.get("score")), "score" in fields)


def _node_text(node: Any) -> Any:
    """Returns the text of a node as a model reads it, with the metadata that the node shows it."""
    schema = sys.modules.get("llama_index.core.schema")
    if schema is None:
        return node.get_content()
    return node.get_content(metadata_mode=schema.MetadataMode.LLM)


def _metadata(value: Any) -> Mapping[str, Any]:
    found = getattr(value, "metadata", None)
    return found if isinstance(found, Mapping) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    """Returns a score as a float; None for one that is missing or not a number."""
    if not _is_number(value) or math.isnan(value):
        return None
    return float(value)
