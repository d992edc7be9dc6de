"""Fits the requests that pass a LiteLLM proxy."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Unpack

from litellm.integrations.custom_logger import CustomLogger

from cupel._errors import OverBudgetError
from cupel._fit import fit
from cupel._types import FitOptions

__all__ = ["CupelHook"]

# The format of the requests of each call type. Other calls have no chat.
_SHAPES = {
    "completion": "openai",
    "acompletion": "openai",
    "anthropic_messages": "anthropic",
    "responses": "openai-responses",
    "aresponses": "openai-responses",
}
# The fields of a request that cupel reads. The proxy adds others, some of them not JSON.
_FIELDS = (
    "model", "messages", "input", "system", "instructions", "tools", "tool_choice", "functions",
    "response_format", "text", "reasoning", "thinking",
    "max_tokens", "max_completion_tokens", "max_output_tokens",
)  # fmt: skip


class CupelHook(CustomLogger):
    """Fits chats into a budget, for `litellm_settings: {callbacks: my_module.hook}`.

    Takes the options of `cupel.fit`. It works on `/v1/chat/completions`, `/v1/messages` and
    `/v1/responses`. The system prompt and the tools of the request are counted. A request whose
    mandatory messages exceed the budget is answered with status 400.

    >>> hook = CupelHook(budget="8k")
    """

    def __init__(self, budget: int | str | None = None, **options: Unpack[FitOptions]) -> None:
        super().__init__()
        self.budget = budget
        self.options = options

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """Returns the request with the fitted messages."""
        shape = _SHAPES.get(call_type)
        key = "input" if shape == "openai-responses" else "messages"
        if shape is None or not isinstance(data.get(key), list):
            return data
        request = {field: data[field] for field in _FIELDS if field in data}
        try:
            # The engine releases the GIL, so other requests go on.
            options: FitOptions = {"shape": shape, **self.options}
            fitted = await asyncio.to_thread(partial(fit, request, self.budget, **options))
        except OverBudgetError as error:
            error.status_code = 400  # type: ignore[attr-defined]  # read by the proxy
            raise
        return {**data, key: fitted.messages}
