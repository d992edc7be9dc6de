"""Fits the contents that the agents of the Agent Development Kit send to a model."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.genai import types
from pydantic import BaseModel

from cupel._adapter import Adapter, OnFit
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._types import BudgetLike, FitOptions

__all__ = ["CupelPlugin"]


class CupelPlugin(BasePlugin):
    """Fits the contents of each model call into a budget, for `App(plugins=[...])`.

    Takes the options of `cupel.fit`. It works for all agents of a runner; for a single one, use
    `Agent(before_model_callback=CupelPlugin(...).before_model_callback)`. The instructions and the
    tools are counted. The session keeps every event; shortened contents are copies. `on_fit` is
    called with each `cupel.Fitted`.

    >>> from google.adk.agents import Agent
    >>> from google.adk.apps import App
    >>> agent = Agent(name="assistant", model="gemini-2.5-flash")
    >>> app = App(name="app", root_agent=agent, plugins=[CupelPlugin(budget="8k")])
    """

    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        name: str = "cupel",
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        super().__init__(name)
        self._adapter = Adapter("CupelPlugin", budget, options, on_fit).check()

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Replaces the contents of the request by those that fit."""
        fitted = await offload(llm_request.contents, partial(self._fit, llm_request))
        self._adapter.report(fitted)
        llm_request.contents = [
            # A marker is new, and a dict.
            types.Content.model_validate(content) if isinstance(content, dict) else content
            for content in fitted.messages
        ]
        return None

    def _fit(self, request: LlmRequest) -> Fitted[Any]:
        return self._adapter.fit(
            request.contents,
            shape="gemini",
            model=request.model,
            system=_system(request.config.system_instruction),
            tools=[_tool(tool) for tool in request.config.tools or []],
        )


def _system(instruction: Any) -> str | dict[str, Any] | None:
    """Returns a system instruction as the API gets it. It may be a text, a content or parts."""
    if instruction is None or isinstance(instruction, str):
        return instruction
    if isinstance(instruction, types.Content):
        return {"parts": [_json(part) for part in instruction.parts or []]}
    parts = instruction if isinstance(instruction, list) else [instruction]
    return {"parts": [{"text": it} if isinstance(it, str) else _json(it) for it in parts]}


def _tool(tool: Any) -> Any:
    # A function or a session of MCP: the client of Gemini makes its declaration later.
    return _json(tool) if isinstance(tool, BaseModel) else {"name": getattr(tool, "__name__", "")}


def _json(value: Any) -> Any:
    is_model = isinstance(value, BaseModel)
    return value.model_dump(mode="json", exclude_none=True) if is_model else value
