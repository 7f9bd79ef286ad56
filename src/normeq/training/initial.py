"""Where the weights of a run start: at random, or from another network's."""

from __future__ import annotations

import torch
from torch import Tensor

import normeq
from normeq import models
from normeq.errors import WeightsError
from normeq.training.recipe import Network


def initial_network(recipe: Network) -> models.Network | models.Wrapped:
    """Create the network of a recipe, with the weights of `recipe.init` where it names some.

    Input channels that the other network lacks (the noise map of a non-blind one, which comes
    last) start at zero: the new network then begins by computing what the other one does.
    """
    network = normeq.create(
        recipe.architecture,
        variant=recipe.variant,
        blind=recipe.blind,
        channels=recipe.channels,
        **recipe.size,
    )
    if recipe.init is not None:
        source = normeq.load(recipe.init).state_dict()
        target = network.state_dict()
        if source.keys() != target.keys():
            raise WeightsError(f"'{recipe.init}' holds another network than the recipe's.")
        network.load_state_dict(
            {name: _widened(source[name], like, name) for name, like in target.items()}
        )
    return network


def _widened(weights: Tensor, like: Tensor, name: str) -> Tensor:
    """Append zeros for the input channels that `weights` lacks."""
    if weights.shape == like.shape:
        return weights
    wider = torch.zeros_like(like)
    window = wider[:, : weights.shape[1]] if min(weights.dim(), like.dim()) > 1 else wider
    if window.shape != weights.shape:
        raise WeightsError(f"'{name}' has shape {tuple(weights.shape)}, not {tuple(like.shape)}.")
    window.copy_(weights)
    return wider
