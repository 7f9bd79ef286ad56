"""Training: recipes, patches made on the fly, the loop, and checkpoints that survive anything."""

from normeq.training.loop import DivergedError, train
from normeq.training.recipe import Recipe, load_recipe, shipped_recipes
from normeq.training.report import Report
from normeq.training.stopping import Stopped

__all__ = [
    "DivergedError",
    "Recipe",
    "Report",
    "Stopped",
    "load_recipe",
    "shipped_recipes",
    "train",
]
