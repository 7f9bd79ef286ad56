"""Training: recipes, patches made on the fly, the loop, and checkpoints that survive anything."""

from normeq.training.recipe import Recipe, load_recipe, shipped_recipes

__all__ = ["Recipe", "load_recipe", "shipped_recipes"]
