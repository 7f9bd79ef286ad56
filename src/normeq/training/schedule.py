"""How the learning rate and the weight average move with the step: pure functions."""

from __future__ import annotations

import math

from normeq.training.recipe import Optimization


def learning_rate(step: int, recipe: Optimization) -> float:
    """Learning rate of the step that is about to be taken; the first step is 0.

    Examples
    --------
    >>> from normeq.training import load_recipe
    >>> from normeq.training.schedule import learning_rate
    >>> recipe = load_recipe("paper-drunet-ordinary-blind").optimization
    >>> learning_rate(0, recipe), learning_rate(100_000, recipe)
    (0.0001, 5e-05)

    Parameters
    ----------
    step
        Steps already taken.
    recipe
        Schedule, warm-up, final decay and number of steps.
    """
    factor = 1.0
    if step < recipe.warmup:
        factor = (step + 1) / recipe.warmup
    elif recipe.schedule == "cosine":
        factor = _cosine(step - recipe.warmup, recipe.steps - recipe.warmup)
    elif recipe.schedule == "halve":
        factor = 0.5 ** (step // recipe.halve_every)
    left = recipe.steps - step
    if recipe.schedule != "cosine" and left < recipe.decay_steps:
        factor *= _cosine(recipe.decay_steps - left, recipe.decay_steps)
    return recipe.learning_rate * factor


def _cosine(done: int, total: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * done / max(total, 1)))


def ema_decay(step: int, decay: float) -> float:
    """Decay of the weight average after `step` steps: a short memory first, then `decay`.

    Examples
    --------
    >>> from normeq.training.schedule import ema_decay
    >>> ema_decay(0, 0.999), ema_decay(1_000_000, 0.999)
    (0.1, 0.999)
    """
    return min(decay, (1 + step) / (10 + step))
