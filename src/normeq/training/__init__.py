"""Training: recipes, patches made on the fly, the loop, and checkpoints.

`loop` is the whole: a `recipe` says what is computed, `data` makes noisy patches of clean images,
`state` takes the steps, and `checkpoint` keeps the state on disk.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from normeq.training.interruption import Stopped
    from normeq.training.loop import DivergedError, train
    from normeq.training.recipe import Recipe
    from normeq.training.recipe_file import load_recipe, shipped_recipes
    from normeq.training.summary import TrainingSummary

# Loaded on first use: checkpoints and stopping serve tuning, too, which needs no normeq[train].
_HOME = {
    "DivergedError": "loop",
    "Recipe": "recipe",
    "Stopped": "interruption",
    "TrainingSummary": "summary",
    "load_recipe": "recipe_file",
    "shipped_recipes": "recipe_file",
    "train": "loop",
}

__all__ = [
    "DivergedError",
    "Recipe",
    "Stopped",
    "TrainingSummary",
    "load_recipe",
    "shipped_recipes",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"normeq.training.{_HOME[name]}"), name)
    raise AttributeError(f"module 'normeq.training' has no attribute {name!r}")
