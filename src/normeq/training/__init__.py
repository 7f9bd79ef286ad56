"""Training: recipes, patches made on the fly, the loop, and checkpoints."""

from normeq.training.interruption import Stopped
from normeq.training.loop import DivergedError, train
from normeq.training.recipe import Recipe
from normeq.training.recipe_file import load_recipe, shipped_recipes
from normeq.training.summary import TrainingSummary

__all__ = [
    "DivergedError",
    "Recipe",
    "Stopped",
    "TrainingSummary",
    "load_recipe",
    "shipped_recipes",
    "train",
]
