"""Fits the input of the OpenAI Agents SDK before each model call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Unpack

from agents import Agent, FunctionTool, Handoff, RunContextWrapper, handoff
from agents.run import CallModelData, ModelInputData

from cupel._adapter import Adapter, OnFit
from cupel._offload import offload
from cupel._types import BudgetLike, FitOptions

__all__ = ["input_filter"]


def input_filter(
    budget: BudgetLike | None = None,
    *,
    on_fit: OnFit | None = None,
    **options: Unpack[FitOptions],
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Returns a filter for `RunConfig(call_model_input_filter=...)`.

    Takes the options of `cupel.fit`. The instructions, the tools and the handoffs of the agent
    are counted. The session keeps every item: only the input of the call is fitted. `on_fit` is
    called with each `cupel.Fitted`.

    >>> from agents import RunConfig
    >>> config = RunConfig(call_model_input_filter=input_filter(budget="8k"))
    """

    adapter = Adapter("input_filter", budget, options, on_fit).check()

    async def fit_input(data: CallModelData[Any]) -> ModelInputData:
        model = data.agent.model
        call = partial(
            adapter.fit,
            data.model_data.input,
            shape="openai-responses",
            model=model if isinstance(model, str) else None,
            system=data.model_data.instructions,
            tools=await _tools(data),
        )
        fitted = await offload(data.model_data.input, call)
        adapter.report(fitted)
        return ModelInputData(input=fitted.messages, instructions=data.model_data.instructions)

    return fit_input


async def _tools(data: CallModelData[Any]) -> list[dict[str, Any]]:
    """Returns the tools of the agent as the Responses API gets them."""
    found = []
    for tool in await data.agent.get_all_tools(RunContextWrapper(data.context)):
        if isinstance(tool, FunctionTool):
            found.append((tool.name, tool.description, tool.params_json_schema))
        else:  # a hosted tool: its definition is at the provider
            found.append((tool.name, "", {}))
    for target in data.agent.handoffs:
        h: Handoff[Any, Any] = handoff(target) if isinstance(target, Agent) else target
        found.append((h.tool_name, h.tool_description, h.input_json_schema))
    return [
        {"type": "function", "name": name, "description": text, "parameters": schema}
        for name, text, schema in found
    ]
