"""The agent middleware of `cupel.langchain`, apart because it needs `langchain`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Unpack

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.utils.function_calling import convert_to_openai_tool

from cupel._adapter import Adapter, OnFit
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._types import BudgetLike, FitOptions

__all__ = ["CupelMiddleware"]


class CupelMiddleware(AgentMiddleware[Any, Any, Any]):
    """Fits the messages of each model call into a budget, for `create_agent(middleware=[...])`.

    Takes the options of `cupel.fit`. The system message and the tools are counted. The state of
    the agent keeps every message; shortened messages are copies. `on_fit` is called with each
    `cupel.Fitted`.

    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models import FakeListChatModel
    >>> model = FakeListChatModel(responses=["Hello!"])
    >>> agent = create_agent(model, middleware=[CupelMiddleware(budget="8k")])
    >>> agent.invoke({"messages": [("user", "Hi.")]})["messages"][-1].content
    'Hello!'
    """

    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        super().__init__()
        self._adapter = Adapter("CupelMiddleware", budget, options, on_fit).check()

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Calls the model with the messages that fit."""
        fitted = self._fit(request)
        self._adapter.report(fitted)
        return handler(request.override(messages=fitted.messages))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Calls the model with the messages that fit."""
        fitted = await offload(request.messages, partial(self._fit, request))
        self._adapter.report(fitted)
        return await handler(request.override(messages=fitted.messages))

    def _fit(self, request: ModelRequest[Any]) -> Fitted[Any]:
        name = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
        return self._adapter.fit(
            request.messages,
            shape="langchain",
            model=name if isinstance(name, str) else None,
            system=request.system_message,
            tools=[convert_to_openai_tool(tool) for tool in request.tools],
        )
