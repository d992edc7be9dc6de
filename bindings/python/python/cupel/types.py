"""The types of arguments and results. Written by `cargo xtask schema`.

Results are dicts, and the names here are their types. A reason is told from others by its key
``reason``. A name in an argument has a ``Literal`` type, so that type checkers find typos:

>>> import cupel
>>> from cupel.types import ExclusionReason, PresetName
>>> def shown(reason: ExclusionReason) -> str:
...     if reason["reason"] == "BudgetExceeded":
...         return f"{reason['item_tokens'] - reason['available_tokens']} tokens too many"
...     return reason["reason"]
>>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
>>> policy: PresetName = "chat"
>>> [shown(entry["reason"]) for entry in cupel.select(items, 50, policy).report.excluded]
['40 tokens too many']
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

__all__ = [
    "BudgetExceeded",
    "CacheBreakpoint",
    "CachePlace",
    "CandidateWithExclusionReason",
    "CandidateWithInclusionReason",
    "CompareAnswer",
    "ComparedPolicy",
    "ComparisonRow",
    "ContextBudget",
    "ContextItem",
    "ContextView",
    "CountCapExceeded",
    "CountRequireCandidatesExhausted",
    "CountRequirementShortfall",
    "Cut",
    "Cuts",
    "Decision",
    "Deduplicated",
    "Difference",
    "DroppedEntry",
    "EncodingName",
    "EvidenceReport",
    "Excluded",
    "ExcludedItem",
    "ExclusionReason",
    "ExplainAnswer",
    "ExplainOneAnswer",
    "ExplainedCandidate",
    "Filtered",
    "FitAnswer",
    "GroupExcluded",
    "HistoryChanged",
    "Included",
    "IncludedItem",
    "InclusionReason",
    "ItemIntervals",
    "Marker",
    "MinBudget",
    "MinBudgetAnswer",
    "ModelAnswer",
    "NearDuplicate",
    "NegativeTokens",
    "Neighbor",
    "Overflow",
    "OverflowStrategy",
    "Passage",
    "Pinned",
    "PinnedOverride",
    "PipelineStage",
    "PlacerName",
    "PresetName",
    "QuotaCapExceeded",
    "QuotaRequireDisplaced",
    "RankedBelow",
    "Reason",
    "Rebuilt",
    "Redundant",
    "Reuse",
    "ScorePart",
    "Scored",
    "ScoredTooLow",
    "ScorerName",
    "SearchAnswer",
    "SelectAnswer",
    "Selected",
    "SelectionReport",
    "Shape",
    "Shortened",
    "ShortenedEntry",
    "SlicerName",
    "Superseded",
    "SweepAnswer",
    "SweepStep",
    "TraceEvent",
    "ViewInterval",
    "Warning",
    "WarningKind",
    "ZeroToken",
]

PresetName: TypeAlias = Literal[
    "agent",
    "single",
    "tool-use",
    "relevant",
    "newest",
    "chat",
    "memory",
    "code-review",
    "rag",
    "document-qa",
    "long-running",
    "debugging",
]
"""A built-in policy."""

EncodingName: TypeAlias = Literal[
    "o200k_base",
    "o200k",
    "cl100k_base",
    "cl100k",
    "llama3",
    "qwen2",
    "deepseek_v3",
    "mistral_v3",
    "kimi_k2",
    "heuristic",
]
"""A token counter."""

ScorerName: TypeAlias = Literal[
    "recency",
    "priority",
    "kind",
    "frequency",
    "reflexive",
    "metadata_trust",
    "relevance",
    "conversation",
]
"""A scorer without required fields."""

SlicerName: TypeAlias = Literal[
    "greedy",
    "rank",
    "diversity",
    "knapsack",
    "group",
    "near_duplicates",
    "choice",
]
"""A slicer without required fields."""

PlacerName: TypeAlias = Literal["chronological", "u-shaped"]
"""A placer."""

OverflowStrategy: TypeAlias = Literal["throw", "truncate", "proceed"]
"""What happens if mandatory items exceed the budget."""

CachePlace: TypeAlias = Literal["system", "head", "previous", "end"]
"""What ends at a ``CacheBreakpoint``."""

PipelineStage: TypeAlias = Literal["Classify", "Score", "Deduplicate", "Slice", "Place"]
"""A stage of the pipeline that emits events."""

Shape: TypeAlias = Literal[
    "openai",
    "openai-responses",
    "anthropic",
    "langchain",
    "claude-code",
    "codex",
    "gemini",
    "bedrock",
    "vercel",
    "ollama",
    "sharegpt",
    "cohere",
    "items",
]
"""The format of a chat, or ``items``."""

WarningKind: TypeAlias = Literal[
    "call_without_result",
    "result_without_call",
    "reasoning_without_item",
    "result_out_of_place",
    "duplicate_result",
    "repeated_role",
    "before_user_turn",
    "cache_breakpoint_dropped",
]
"""What a ``Warning`` is about."""


class CacheBreakpoint(TypedDict):
    """A place in a window where a breakpoint of the provider's prompt cache is worth one of the
    four that a request may have.

    Keys:
        place: What ends there.
        index (from 0): The position in the input of the message that it is after; null for fields
            of the request.
        position (from 0): The position of that message in the window, where markers count.
    """

    place: CachePlace
    index: int | None
    position: int | None


class CandidateWithExclusionReason(TypedDict):
    """A candidate with its score and the reason for its inclusion or exclusion.

    Keys:
        index (from 0): Its position.
        score: Its score; a string if it is not finite.
        reason: Why it is in or out.
    """

    index: int
    score: float | Literal["NaN", "inf", "-inf"]
    reason: ExclusionReason


class CandidateWithInclusionReason(TypedDict):
    """A candidate with its score and the reason for its inclusion or exclusion.

    Keys:
        index (from 0): Its position.
        score: Its score; a string if it is not finite.
        reason: Why it is in or out.
    """

    index: int
    score: float | Literal["NaN", "inf", "-inf"]
    reason: InclusionReason


class CompareAnswer(TypedDict):
    """The windows of several policies, and where they differ.

    Keys:
        variants: One entry per policy.
        diffs: The messages or items that are not the same in all windows.
    """

    variants: list[ComparedPolicy]
    diffs: list[Difference]


class ComparedPolicy(TypedDict):
    """The window of one policy.

    Keys:
        policy: The name of the policy.
        selected: The positions of the window, in its order.
        shortened: The messages or items in it that are shortened, in ascending order.
        tokens: Its tokens, with its markers.
    """

    policy: str
    selected: list[int]
    shortened: list[int]
    tokens: int


class ComparisonRow(TypedDict):
    """One value of a ``Comparison``.

    Keys:
        measure: The name of the measure.
        at: The budget or the rank.
        policy: The policy.
        minus: The policy that is subtracted.
        value: The value on all data.
        low: The lower end of the interval.
        high: The upper end of the interval.
    """

    measure: str
    at: int
    policy: str
    minus: str | None
    value: float
    low: float
    high: float


class ContextBudget(TypedDict):
    """The limits of a run, in tokens.

    Keys:
        max_tokens: The limit of the model in tokens.
        target_tokens: The tokens to aim for, at most the limit.
        output_reserve: The tokens reserved for the answer of the model.
        reserved_slots: The tokens reserved for kinds of items, by kind.
        estimation_safety_margin_percent: The safety margin for estimated counts, in percent from 0
            to 100.
    """

    max_tokens: int
    target_tokens: int
    output_reserve: int
    reserved_slots: dict[str, int]
    estimation_safety_margin_percent: float


class ContextItem(TypedDict):
    """An item: a text with its tokens, and what strategies know about it.

    Keys:
        content: The text.
        tokens: Its tokens.
        kind: The kind, such as ``Message`` or ``ToolOutput``.
        source: Where it comes from, such as ``Chat`` or ``Rag``.
        tags: The tags.
        metadata: The metadata, by key.
        pinned: Whether it must be in the window.
        future_relevance_hint: The caller's estimate of its future relevance.
        original_tokens: The tokens before it was shortened.
        priority: The priority; higher is more important.
        timestamp: The time, in RFC 3339.
        views: Shorter forms, largest first.
    """

    content: str
    tokens: int
    kind: str
    source: str
    tags: list[str]
    metadata: dict[str, str]
    pinned: bool
    future_relevance_hint: NotRequired[float | Literal["NaN", "inf", "-inf"]]
    original_tokens: NotRequired[int]
    priority: NotRequired[int]
    timestamp: NotRequired[str]
    views: NotRequired[list[ContextView]]


class ContextView(TypedDict):
    """A shorter form of an item with its own token count: an extract, a title, a placeholder.

    Keys:
        content: The shorter content.
        tokens: Its tokens.
        level: The nominal size in tokens that the view was made for.
        value: The share of the item's score that the view keeps, from 0 to 1.
    """

    content: str
    tokens: int
    level: int
    value: float


class CountRequirementShortfall(TypedDict):
    """A count requirement that was not met.

    Keys:
        kind: The kind, as configured.
        required_count (from 0): The number of items required.
        satisfied_count (from 0): The number of items included.
    """

    kind: str
    required_count: int
    satisfied_count: int


class Cut(TypedDict):
    """A cut: a request that exceeded the budget.

    Keys:
        request (from 0): The number of the request, from 1.
        messages (from 0): The messages that the chat had.
        tokens_before: The tokens before the cut.
        tokens_after: The tokens after the cut.
        budget: The tokens that the request may have, of messages that can be cut.
    """

    request: int
    messages: int
    tokens_before: int
    tokens_after: int
    budget: int


class Cuts(TypedDict):
    """The cuts of a chat that exceeds the budget, and when the next one comes.

    Keys:
        budget: The tokens that a request may have.
        requests (from 0): The requests so far, this one included.
        made: The cuts, in order.
        pace: The tokens that a request added, on average.
        next_in: How many requests follow without a cut, if they add as many tokens.
    """

    budget: int
    requests: int
    made: list[Cut]
    pace: int
    next_in: int


class Included(TypedDict):
    """The candidate is in the window.

    Keys:
        decision: The name of the case.
        position (from 0): Its position in the window, from 0.
        reason: Why it is included.
    """

    decision: Literal["included"]
    position: int
    reason: InclusionReason


class Excluded(TypedDict):
    """The candidate is not in the window.

    Keys:
        decision: The name of the case.
        stage: The stage that excluded it.
        reason: Why it is excluded.
    """

    decision: Literal["excluded"]
    stage: PipelineStage
    reason: ExclusionReason


class Difference(TypedDict):
    """A message or an item that is in some windows only, or shortened in some.

    Keys:
        index (from 0): Its position.
        item: The item.
        included: Whether it is in the window of each policy.
        tokens: Its tokens in the window of each policy; null where it is out. Fewer than those of
            the item if it is shortened.
    """

    index: int
    item: ContextItem
    included: list[bool]
    tokens: list[int | None]


class DroppedEntry(TypedDict):
    """A dropped message or item.

    Keys:
        index (from 0): Its position.
        role: The role of a message as written, or the kind of an item.
        tokens: Its tokens.
        reason: The reason.
    """

    index: int
    role: str
    tokens: int
    reason: ExclusionReason


class EvidenceReport(TypedDict):
    """The results of policies on a data set.

    Keys:
        file: The name of the data set.
        transcripts (from 0): The transcripts.
        questions (from 0): The questions with evidence.
        skipped (from 0): The questions without evidence, which are not measured.
        samples (from 0): The bootstrap samples of an interval.
        results: The results.
    """

    file: str
    transcripts: int
    questions: int
    skipped: int
    samples: int
    results: list[ComparisonRow]


class ExcludedItem(TypedDict):
    """An item that is not in the window.

    Keys:
        item: The item.
        score: The item's score; 0.0 if it was excluded before scoring.
        reason: Why it is excluded.
    """

    item: ContextItem
    score: float | Literal["NaN", "inf", "-inf"]
    reason: ExclusionReason


class BudgetExceeded(TypedDict):
    """The item does not fit.

    Keys:
        reason: The name of the reason.
        item_tokens: The tokens the item needs.
        available_tokens: The tokens left when the stage finished; negative after over-commitment.
    """

    reason: Literal["BudgetExceeded"]
    item_tokens: int
    available_tokens: int


class ScoredTooLow(TypedDict):
    """The item scored below a threshold. No built-in stage emits it.

    Keys:
        reason: The name of the reason.
        score: The item's score.
        threshold: The threshold.
    """

    reason: Literal["ScoredTooLow"]
    score: float | Literal["NaN", "inf", "-inf"]
    threshold: float | Literal["NaN", "inf", "-inf"]


class Deduplicated(TypedDict):
    """Another item has the same content and a higher score, or the same score and an earlier
    position.

    Keys:
        reason: The name of the reason.
        deduplicated_against: The content of the item that stayed.
    """

    reason: Literal["Deduplicated"]
    deduplicated_against: str


class QuotaCapExceeded(TypedDict):
    """The quota of the item's kind is used up. No built-in stage emits it.

    Keys:
        reason: The name of the reason.
        kind: The kind.
        cap: The kind's limit.
        actual: The amount with the item included.
    """

    reason: Literal["QuotaCapExceeded"]
    kind: str
    cap: int
    actual: int


class QuotaRequireDisplaced(TypedDict):
    """A requirement of another kind took the item's place. No built-in stage emits it.

    Keys:
        reason: The name of the reason.
        displaced_by_kind: The other kind.
    """

    reason: Literal["QuotaRequireDisplaced"]
    displaced_by_kind: str


class NegativeTokens(TypedDict):
    """The item's token count is negative.

    Keys:
        reason: The name of the reason.
        tokens: The token count.
    """

    reason: Literal["NegativeTokens"]
    tokens: int


class PinnedOverride(TypedDict):
    """The item fits without the pinned items, but not with them.

    Keys:
        reason: The name of the reason.
        displaced_by: The content of the first pinned item that has tokens.
    """

    reason: Literal["PinnedOverride"]
    displaced_by: str


class Filtered(TypedDict):
    """A filter removed the item. No built-in stage emits it.

    Keys:
        reason: The name of the reason.
        filter_name: The filter.
    """

    reason: Literal["Filtered"]
    filter_name: str


class CountCapExceeded(TypedDict):
    """The window holds as many items of the item's kind as the count limit allows.

    Keys:
        reason: The name of the reason.
        kind: The kind.
        cap (from 0): The count limit.
        count (from 0): The number of items of the kind.
    """

    reason: Literal["CountCapExceeded"]
    kind: str
    cap: int
    count: int


class CountRequireCandidatesExhausted(TypedDict):
    """No candidates of the kind were left. No built-in stage emits it.

    Keys:
        reason: The name of the reason.
        kind: The kind.
    """

    reason: Literal["CountRequireCandidatesExhausted"]
    kind: str


class GroupExcluded(TypedDict):
    """The group the item belongs to does not fit.

    Keys:
        reason: The name of the reason.
        group_size (from 0): The number of items in the group.
        group_tokens: The tokens of the group.
        available_tokens: The tokens left when the slicer finished; negative after over-commitment.
    """

    reason: Literal["GroupExcluded"]
    group_size: int
    group_tokens: int
    available_tokens: int


class RankedBelow(TypedDict):
    """Items are dropped lowest rank first, and one of a higher rank does not fit.

    Keys:
        reason: The name of the reason.
        item_tokens: The tokens of the item, or of its group.
        blocking_tokens: The tokens of the item or group of a higher rank that does not fit.
        available_tokens: The tokens left for that one when the slicer finished.
    """

    reason: Literal["RankedBelow"]
    item_tokens: int
    blocking_tokens: int
    available_tokens: int


class NearDuplicate(TypedDict):
    """A better item of similar content is in the window.

    Keys:
        reason: The name of the reason.
        similar_to: The content of the better item.
        similarity: The similarity of both, from 0 to 1.
    """

    reason: Literal["NearDuplicate"]
    similar_to: str
    similarity: float | Literal["NaN", "inf", "-inf"]


class Redundant(TypedDict):
    """The item does not fit, and is similar to one in the window, which lowered its marginal gain.

    Keys:
        reason: The name of the reason.
        gain: The marginal gain of the item, or an upper bound of it: it is not computed again once
            the item does not fit.
        similar_to: The content of the similar item.
        similarity: The similarity of both, from 0 to 1.
    """

    reason: Literal["Redundant"]
    gain: float | Literal["NaN", "inf", "-inf"]
    similar_to: str
    similarity: float | Literal["NaN", "inf", "-inf"]


class Superseded(TypedDict):
    """A newer result of the same call is in the window.

    Keys:
        reason: The name of the reason.
        superseded_by: The content of the newer result.
    """

    reason: Literal["Superseded"]
    superseded_by: str


class ExplainAnswer(TypedDict):
    """Why each message or item is in or out.

    Keys:
        policy: The name of the policy.
        budget: The limits.
        overhead: The request overhead: the tokens of tools and parameters.
        tokens_used: The tokens of the window, with its markers.
        candidates: The window in order, then the other candidates, best score first.
        warnings: What the provider may reject in the window.
    """

    policy: str
    budget: ContextBudget
    overhead: int
    tokens_used: int
    candidates: list[ExplainedCandidate]
    warnings: list[Warning]


class ExplainOneAnswer(TypedDict):
    """Everything about one message or item. Ranks count from 1, positions from 0.

    Keys:
        index (from 0): The candidate's position in the input.
        item: The candidate.
        decision: The decision, and the stage that made it.
        score: The candidate's score.
        ranked (from 0): The number of ranked candidates.
        tokens_used: The tokens of the window.
        tokens_left: The tokens that the window does not use of its limit; negative after an
            overflow.
        budget: The budget of the run.
        displaced_by: The candidates in the window instead of this one: the duplicate that stayed,
            the similar or newer item, the pinned items, the items of its kind that fill the count
            limit, or the selected items of lower rank that are droppable.
        included_at: The ranges of targets, first and last, at which the candidate is included, from
            the least one above the target of the run. The search ends 131,072 tokens above that
            one; for slicers that have to try budgets one by one it ends there.
        neighbors: The candidates next to this one in rank, better ones first.
        cut: The cut that shortened or dropped the message, if the policy has a replay.
        extra_tokens: The least number of tokens by which both limits of the budget must grow for
            the candidate to be selected; absent if the budget is not the cause, or if more than
            131,072 tokens are needed, or more than 2,048 for slicers that have to try budgets one
            by one.
        in_full: The ranges of targets, first and last, above that of the run that include a
            shortened message in full, if the policy has a replay.
        in_full_at: The least target above that of the run at which the candidate is included in
            full; absent if it is not shortened, or if the target is too far away, as in
            ``extra_tokens``.
        parts: How the score is composed; absent for a candidate that is not scored.
        rank (from 0): The candidate's rank, from 1; absent for one that is not ranked.
        superseded_by (from 0): The message with the newer result that supersedes its own, if it is
            shortened.
    """

    index: int
    item: ContextItem
    decision: Decision
    score: float | Literal["NaN", "inf", "-inf"]
    ranked: int
    tokens_used: int
    tokens_left: int
    budget: ContextBudget
    displaced_by: list[int]
    included_at: list[list[int]]
    neighbors: list[Neighbor]
    cut: NotRequired[Cut]
    extra_tokens: NotRequired[int]
    in_full: NotRequired[list[list[int]]]
    in_full_at: NotRequired[int]
    parts: NotRequired[ScorePart]
    rank: NotRequired[int]
    superseded_by: NotRequired[int]


class ExplainedCandidate(TypedDict):
    """A message or an item, and what was decided about it.

    Keys:
        index (from 0): Its position.
        included: Whether it is in the window.
        role: The role of a message as written, or the kind of an item.
        kind: Its kind.
        tokens: Its tokens in the window, or as they were read if it is out.
        score: Its score; a string if it is not finite.
        reason: Why it is in or out.
        cut: The cut that shortened or dropped it, if the policy has a replay.
        superseded_by (from 0): The message with the newer result that supersedes its own, if it is
            shortened.
    """

    index: int
    included: bool
    role: str
    kind: str
    tokens: int
    score: float | Literal["NaN", "inf", "-inf"]
    reason: Reason
    cut: NotRequired[Cut]
    superseded_by: NotRequired[int]


class FitAnswer(TypedDict):
    """The answer to ``fit``.

    Keys:
        kept: The positions of the kept messages or items, in ascending order.
        dropped: The dropped messages or items, in order.
        shortened: The kept messages with shortened texts, in order.
        markers: The texts in the place of dropped messages, in order.
        warnings: What the provider may reject in the window, and lost cache breakpoints.
        cache_breakpoints: Where a breakpoint of the provider's prompt cache is worth one, in order;
            at most four. Empty for items.
        tokens_before: The tokens of the whole request before.
        tokens_after: The tokens of the whole request after.
        shape: The format of the input, such as ``openai`` or ``items``.
        budget: The tokens that the window may have.
        counter: The name of the token counter; null if the input states all tokens.
        estimated: Whether the token counts are estimates.
        chat: The input with the window in its place, byte for byte where nothing changed; several
            lines are an array. Absent unless it was requested.
        cuts: The cuts of all requests so far; absent if the policy has no replay, or if the chat
            does not exceed the budget.
        rebuilt: Why a part of the state is of no use; null if all of it is that of the chat.
        reuse: What the window shares with the one before it; null for the first.
    """

    kept: list[int]
    dropped: list[DroppedEntry]
    shortened: list[ShortenedEntry]
    markers: list[Marker]
    warnings: list[Warning]
    cache_breakpoints: list[CacheBreakpoint]
    tokens_before: int
    tokens_after: int
    shape: Shape
    budget: int
    counter: str | None
    estimated: bool
    chat: NotRequired[Any]
    cuts: NotRequired[Cuts]
    rebuilt: NotRequired[Rebuilt | None]
    reuse: NotRequired[Reuse | None]


class IncludedItem(TypedDict):
    """An item in the window.

    Keys:
        item: The item as it is in the window: in full, or as one of its views.
        score: The item's score; 1.0 for pinned items.
        reason: Why it is included.
    """

    item: ContextItem
    score: float | Literal["NaN", "inf", "-inf"]
    reason: InclusionReason


class Scored(TypedDict):
    """The slicer selected the item by its score.

    Keys:
        reason: The name of the reason.
    """

    reason: Literal["Scored"]


class Pinned(TypedDict):
    """The item is pinned.

    Keys:
        reason: The name of the reason.
    """

    reason: Literal["Pinned"]


class ZeroToken(TypedDict):
    """The item has no tokens.

    Keys:
        reason: The name of the reason.
    """

    reason: Literal["ZeroToken"]


class Shortened(TypedDict):
    """The slicer selected a view of the item.

    Keys:
        reason: The name of the reason.
        tokens: The tokens of the view.
        original_tokens: The tokens of the item in full.
    """

    reason: Literal["Shortened"]
    tokens: int
    original_tokens: int


class ItemIntervals(TypedDict):
    """The budgets at which one candidate is in the window.

    Keys:
        index (from 0): The candidate's position.
        intervals: First and last budget of every interval, ascending; intervals neither touch nor
            overlap.
        views: The parts of the intervals in which the candidate is in the window as a view,
            ascending.
    """

    index: int
    intervals: list[list[int]]
    views: NotRequired[list[ViewInterval]]


class Marker(TypedDict):
    """A text in the place of dropped messages: a message of its own, or part of the user message
    next to it if roles would not alternate otherwise.

    Keys:
        before (from 0): The position of the kept message that it precedes.
        omitted (from 0): The number of messages dropped there.
        role: Its role.
        text: Its text.
        tokens: The tokens that it adds to the window.
        merged_into (from 0): The position of the user message whose text it is part of, if it is
            not a message of its own. It precedes that text if the message follows the dropped ones,
            and follows it otherwise.
    """

    before: int
    omitted: int
    role: str
    text: str
    tokens: int
    merged_into: int | None


class MinBudget(TypedDict):
    """The budgets at which one message or item is included.

    Keys:
        index (from 0): Its position.
        min_budget: The smallest budget from which on it stays.
        in_full: The smallest budget from which on it stays in full.
        ranges: All ranges that include it.
    """

    index: int
    min_budget: int | None
    in_full: int | None
    ranges: list[list[int]]


class MinBudgetAnswer(TypedDict):
    """The smallest budgets from which on messages or items stay.

    Keys:
        exact: Whether every budget was tried, not samples.
        ceiling: The largest budget that was to be tried.
        items: One entry per message or item, or only the requested one.
        stopped_at: The last budget that was tried, if the observer stopped the search.
    """

    exact: bool
    ceiling: int
    items: list[MinBudget]
    stopped_at: NotRequired[int]


class ModelAnswer(TypedDict):
    """A known model.

    Keys:
        name: The name.
        window: The context window in tokens.
        input_limit: The most tokens of a request, if the model accepts fewer than its window; null
            otherwise.
        encoding: The encoding; null if it is not public.
        estimated: Whether token counts are estimates.
        source: The documentation that the figures are from.
        as_of: The month in which the figures were last compared with it.
    """

    name: str
    window: int
    input_limit: int | None
    encoding: str | None
    estimated: bool
    source: str
    as_of: str


class Neighbor(TypedDict):
    """A candidate next to another in rank.

    Keys:
        index (from 0): The candidate's position in the input.
        rank (from 0): Its rank, from 1.
        score: Its score.
        tokens: Its tokens.
        included: Whether it is in the window.
    """

    index: int
    rank: int
    score: float | Literal["NaN", "inf", "-inf"]
    tokens: int
    included: bool


class Overflow(TypedDict):
    """An overflow that the policy accepts.

    Keys:
        tokens_over_budget: The tokens over the budget.
        items: The positions of all items of the window: the pinned ones first, then the others by
            rank.
    """

    tokens_over_budget: int
    items: list[int]


class Passage(TypedDict):
    """A message or an item that matches.

    Keys:
        index (from 0): Its position.
        role: The role of a message as written, or the kind of an item.
        tokens: Its tokens.
        score: Its score; a string if it is not finite.
        parts: What the score is made of.
        content: Its text.
    """

    index: int
    role: str
    tokens: int
    score: float | Literal["NaN", "inf", "-inf"]
    parts: list[ScorePart]
    content: str


class HistoryChanged(TypedDict):
    """The message at this position is not the one that the chat had there before. A prompt cache
    ends before it.

    Keys:
        history_changed (from 0): The message at this position is not the one that the chat had
            there before. A prompt cache ends before it.
    """

    history_changed: int


class Reuse(TypedDict):
    """The prefix that a window shares with the one before it, byte for byte but for breakpoints of
    the prompt cache.

    Keys:
        tokens: The tokens of the shared prefix.
        of: The tokens of the previous window.
        share: The share of the previous window that is the prefix, in ``[0, 1]``.
        first_changed (from 0): The position of the first message of the previous window that
            changed or was dropped.
    """

    tokens: int
    of: int
    share: float
    first_changed: int | None


class ScorePart(TypedDict):
    """A score with the scores it is computed from.

    Keys:
        scorer: The name of the scorer.
        score: Its score.
        contribution: Its contribution to a weighted average: score times weight.
        parts: The scores it is computed from.
        weight: Its normalized weight in a weighted average.
    """

    scorer: str
    score: float | Literal["NaN", "inf", "-inf"]
    contribution: NotRequired[float | Literal["NaN", "inf", "-inf"]]
    parts: NotRequired[list[ScorePart]]
    weight: NotRequired[float]


class SearchAnswer(TypedDict):
    """The passages that match a question, best first.

    Keys:
        query: The question.
        scorer: The name of the scorer or of its policy.
        matching (from 0): How many messages or items score above 0.
        passages: The best of them.
    """

    query: str
    scorer: str
    matching: int
    passages: list[Passage]


class SelectAnswer(TypedDict):
    """The decisions about every candidate in JSON.

    Keys:
        selected: The window in order.
        included: The window in order, with scores and reasons.
        excluded: The other candidates, best score first.
        overflow: The overflow that the policy accepts; null if the window is within the budget.
        report: The report of the run; absent from a brief answer. The durations of its events are 0
            unless times were asked for.
    """

    selected: list[Selected]
    included: list[CandidateWithInclusionReason]
    excluded: list[CandidateWithExclusionReason]
    overflow: Overflow | None
    report: SelectionReport


class Selected(TypedDict):
    """An item of the window.

    Keys:
        index (from 0): Its position.
        item: The item as it is in the window; absent from a brief answer.
    """

    index: int
    item: ContextItem


class SelectionReport(TypedDict):
    """What a run decided about every candidate.

    Keys:
        events: The events of the run, in order.
        included: The window, in order.
        excluded: The excluded items, best score first; equal scores in the order of exclusion.
        total_candidates (from 0): The number of items in both lists.
        total_tokens_considered: The tokens of both lists. A shortened item counts with its original
            tokens.
        count_requirement_shortfalls: Count requirements that were not met.
    """

    events: list[TraceEvent]
    included: list[IncludedItem]
    excluded: list[ExcludedItem]
    total_candidates: int
    total_tokens_considered: int
    count_requirement_shortfalls: list[CountRequirementShortfall]


class ShortenedEntry(TypedDict):
    """A kept message with shortened texts.

    Keys:
        index (from 0): Its position.
        role: Its role as written.
        level: The most tokens that each of its shortened texts may have.
        tokens: Its tokens.
        original_tokens: Its tokens before.
        texts: The path of each shortened value and its new text; absent in an answer without texts.
    """

    index: int
    role: str
    level: int
    tokens: int
    original_tokens: int
    texts: list[list[str]]


class SweepAnswer(TypedDict):
    """The window at every budget of a range.

    Keys:
        exact: Whether the steps are complete. If not, budgets were sampled: a step is certain at
            its first budget, and smaller steps before the next may be missing.
        steps: Budgets with the same window, in ascending order, without gaps.
        items: The budgets at which each candidate is in the window, by position.
        monotone: Whether no budget of the range drops or shortens what a smaller one keeps in full
            or longer. A policy with a replay has cuts of its own at each budget.
        stopped_at: The last budget that was tried, if the observer stopped the search.
    """

    exact: bool
    steps: list[SweepStep]
    items: list[ItemIntervals]
    monotone: bool
    stopped_at: NotRequired[int]


_SweepStep = TypedDict("_SweepStep", {"from": int})


class SweepStep(_SweepStep):
    """Budgets with the same window: the same items, in the same forms.

    Keys:
        from: The first of the budgets.
        to: The last of the budgets.
        tokens_used: The tokens of the window.
        total_score: The sum of the scores of the window's items, 1.0 for each pinned one. A
            shortened item counts with its score times the value of its view.
        included (from 0): The number of items in the window.
        shortened (from 0): The number of items in the window as a view.
        excluded (from 0): The number of candidates that are not in the window.
        error: The code of the error that runs with these budgets end with. There is no window then.
    """

    to: int
    tokens_used: int
    total_score: float | Literal["NaN", "inf", "-inf"]
    included: int
    shortened: int
    excluded: int
    error: NotRequired[str]


class TraceEvent(TypedDict):
    """An event of a run: a stage finished, or an item was excluded.

    Keys:
        stage: The stage.
        duration_ms: The duration in milliseconds.
        item_count (from 0): The number of items.
        message: Details; absent for stage events.
    """

    stage: PipelineStage
    duration_ms: float | Literal["NaN", "inf", "-inf"]
    item_count: int
    message: NotRequired[str]


_ViewInterval = TypedDict("_ViewInterval", {"from": int})


class ViewInterval(_ViewInterval):
    """The budgets at which one candidate is in the window as one of its views.

    Keys:
        from: The first of the budgets.
        to: The last of the budgets.
        view (from 0): The index of the view.
    """

    to: int
    view: int


class Warning(TypedDict):
    """A warning about a window.

    Keys:
        kind: What is wrong.
        messages: The positions of the messages, in ascending order.
    """

    kind: WarningKind
    messages: list[int]


Decision: TypeAlias = Included | Excluded
"""What a run decided about one candidate."""

ExclusionReason: TypeAlias = (
    BudgetExceeded
    | ScoredTooLow
    | Deduplicated
    | QuotaCapExceeded
    | QuotaRequireDisplaced
    | NegativeTokens
    | PinnedOverride
    | Filtered
    | CountCapExceeded
    | CountRequireCandidatesExhausted
    | GroupExcluded
    | RankedBelow
    | NearDuplicate
    | Redundant
    | Superseded
)
"""Why an item is not in the window. A slicer in Python may state others, with keys of their own."""

InclusionReason: TypeAlias = Scored | Pinned | ZeroToken | Shortened
"""Why an item is in the window."""

Reason: TypeAlias = InclusionReason | ExclusionReason
"""Why a candidate is in or out."""

Rebuilt: TypeAlias = HistoryChanged | Literal["other_settings"]
"""Why a part of a state is of no use."""
