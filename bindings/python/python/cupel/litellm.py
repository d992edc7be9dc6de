"""Fits the requests that pass a LiteLLM proxy."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Literal, Unpack

from litellm.integrations.custom_logger import CustomLogger

from cupel._adapter import Adapter, OnFit
from cupel._errors import CupelError, InternalError, InvalidInputError
from cupel._offload import offload
from cupel._types import BudgetLike, FitOptions
from cupel.types import Shape

__all__ = ["CupelHook"]

_logger = logging.getLogger("cupel")

# The format of the requests of each call type. Other calls have no chat.
_SHAPES: dict[str, Shape] = {
    "completion": "openai",
    "acompletion": "openai",
    "anthropic_messages": "anthropic",
    "responses": "openai-responses",
    "aresponses": "openai-responses",
}


class CupelHook(CustomLogger):
    """Fits chats into a budget, for `litellm_settings: {callbacks: my_module.hook}`.

    Takes the options of `cupel.fit`. It works on `/v1/chat/completions`, `/v1/messages` and
    `/v1/responses`. The system prompt and the tools of the request are counted. A request that
    cannot be fitted, such as one whose mandatory messages exceed the budget, is answered with
    status 400; with `on_error="pass"` it is sent as it is, and the logger `cupel` has a warning.
    `on_fit` is called with each `cupel.Fitted`.

    >>> hook = CupelHook(budget="8k")
    """

    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        on_error: Literal["raise", "pass"] = "raise",
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        super().__init__()
        if on_error not in ("raise", "pass"):
            message = f"expected 'raise' or 'pass', got {on_error!r}"
            raise InvalidInputError(message, path="on_error")
        self._adapter = Adapter("CupelHook", budget, options, on_fit).check()
        self._on_error = on_error

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """Returns the request with the fitted messages."""
        shape = _SHAPES.get(call_type)
        key = "input" if shape == "openai-responses" else "messages"
        if shape is None or not isinstance(data.get(key), list):
            return data
        try:
            fitted = await offload(data[key], partial(self._adapter.fit, data, shape=shape))
        except Exception as error:
            if self._on_error == "pass":
                _logger.warning("a request was not fitted and is sent as it is: %s", error)
                return data
            # The proxy reads the status. Without one it answers 500, which clients repeat.
            if isinstance(error, CupelError) and not isinstance(error, InternalError):
                error.status_code = 400  # type: ignore[attr-defined]
            raise
        self._adapter.report(fitted)
        return {**data, key: fitted.messages}
