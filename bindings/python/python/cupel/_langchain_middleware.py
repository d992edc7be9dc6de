"""The agent middleware of `cupel.langchain`, apart because it needs `langchain`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.utils.function_calling import convert_to_openai_tool

from cupel._fit import fit
from cupel._types import FitOptions

__all__ = ["CupelMiddleware"]


class CupelMiddleware(AgentMiddleware[Any, Any, Any]):
    """Fits the messages of each model call into a budget, for `create_agent(middleware=[...])`.

    Takes the options of `cupel.fit`. The system message and the tools are counted. The state of
    the agent keeps every message; shortened messages are copies.

    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models import FakeListChatModel
    >>> model = FakeListChatModel(responses=["Hello!"])
    >>> agent = create_agent(model, middleware=[CupelMiddleware(budget="8k")])
    >>> agent.invoke({"messages": [("user", "Hi.")]})["messages"][-1].content
    'Hello!'
    """

    def __init__(self, budget: int | str | None = None, **options: Unpack[FitOptions]) -> None:
        super().__init__()
        self.budget = budget
        self.options = options

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Calls the model with the messages that fit."""
        return handler(self._fit(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Calls the model with the messages that fit."""
        return await handler(self._fit(request))

    def _fit(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        name = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
        options: FitOptions = {
            "model": name if isinstance(name, str) else None,
            **self.options,
            "shape": "langchain",
        }
        fitted = fit(
            request.messages,
            self.budget,
            system=request.system_message,
            tools=[convert_to_openai_tool(tool) for tool in request.tools],
            **options,
        )
        return request.override(messages=fitted.messages)
