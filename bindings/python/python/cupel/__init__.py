"""Decides what goes into a language model's context window, and says why for every item.

>>> import cupel
>>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
>>> cupel.fit(chat, budget="8k").kept
[0]
"""

from cupel import _commands
from cupel._batches import FittedBatches, fit_batches
from cupel._commands import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from cupel._cupel import (
    Budget,
    Choice,
    Item,
    Items,
    Placer,
    Policy,
    Report,
    Scorer,
    SelectedBatches,
    Selection,
    Slicer,
    __version__,
    presets,
    select,
    select_batches,
    select_index,
)
from cupel._errors import (
    CupelError,
    CupelWarning,
    InternalError,
    InvalidInputError,
    OverBudgetError,
)
from cupel._fit import Fitted, Fitter, afit, fit
from cupel._pipeline import Pipeline
from cupel._types import FitOptions

__all__ = [
    "Budget",
    "Choice",
    "CupelError",
    "CupelWarning",
    "FitOptions",
    "Fitted",
    "FittedBatches",
    "Fitter",
    "InternalError",
    "InvalidInputError",
    "Item",
    "Items",
    "OverBudgetError",
    "Pipeline",
    "Placer",
    "Policy",
    "Report",
    "Scorer",
    "SelectedBatches",
    "Selection",
    "Slicer",
    "__version__",
    "afit",
    "fit",
    "fit_batches",
    "presets",
    "select",
    "select_batches",
    "select_index",
]
__all__ += _commands.__all__

# Tracebacks, pickles and help show the names under which callers import them.
for _public in map(globals().get, __all__):
    if getattr(_public, "__module__", "").startswith("cupel._"):
        _public.__module__ = "cupel"
