"""Where the weights of a run start: at random, or from another network's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvTransposeNd
from torch.nn.utils import parametrize

import normeq
from normeq import models
from normeq.errors import WeightsError
from normeq.models.building_blocks import ResidualBlock
from normeq.models.unet import UNet
from normeq.training.color_start import in_color
from normeq.training.recipe import NetworkSettings


def new_network(recipe: NetworkSettings) -> models.Network | models.Wrapped:
    """Create the network of a recipe, with random weights."""
    return normeq.create(
        recipe.architecture,
        variant=recipe.variant,
        takes_sigma=recipe.takes_sigma,
        takes_correlation=recipe.takes_correlation,
        channels=recipe.channels,
        separate_channels=recipe.separate_channels,
        **recipe.size,
    )


def initial_network(recipe: NetworkSettings) -> models.Network | models.Wrapped:
    """Create the network of a recipe, with the weights of `recipe.init` where it names some.

    The other network may be narrower, have fewer residual blocks, or take fewer noise maps: the
    new one then begins by computing what the other one does. A colour network may begin as a gray
    one (see `in_color`). Its card says where it comes from.
    """
    network = new_network(recipe)
    if recipe.init is not None:
        other = normeq.load(recipe.init)
        card = other.card
        if recipe.separate_channels and isinstance(other, UNet) and other.channels == 1:
            other = in_color(other)
        _take_over(network, other, recipe.init)
        network.card = {"started_from": {"weights": recipe.init, **card}}
    return network


@torch.no_grad()
def _take_over(
    network: models.Network | models.Wrapped, other: models.Network | models.Wrapped, name: str
) -> None:
    """Let a network compute what another one of the same skeleton does."""
    wanted, found = _skeleton(network), _skeleton(other)
    if wanted != found:
        differences = [f"{k}={v!r}" for k, v in found.items() if wanted.get(k) != v]
        raise WeightsError(
            f"'{name}' contains a network other than the recipe's: {', '.join(differences)}."
        )
    mine, given = network.state_dict(), other.state_dict()
    if {k: t.shape for k, t in mine.items()} == {k: t.shape for k, t in given.items()}:
        network.load_state_dict(given)
        return
    for path, layer, counterpart in _counterparts(network, other):
        if counterpart is None:
            assert isinstance(layer, ResidualBlock)
            layer.start_as_identity()
            continue
        for key in _own_tensors(layer):
            values = getattr(counterpart, key)
            wider = _widened(values, getattr(layer, key), layer, f"{path}{key}")
            if parametrize.is_parametrized(layer, key):
                setattr(layer, key, wider)  # finds the parameters behind these values
            else:
                getattr(layer, key).copy_(wider)


def _skeleton(network: models.Network | models.Wrapped) -> dict[str, Any]:
    """Return what two networks have in common if one can begin as the other."""
    free = ("width", "widths", "blocks", "takes_sigma", "takes_correlation")
    fixed = {key: value for key, value in network.config.items() if key not in free}
    depth = {"scales": len(network.config["widths"])} if "widths" in network.config else {}
    return {"architecture": network.architecture, **fixed, **depth}


def _counterparts(
    layer: nn.Module, other: nn.Module, path: str = ""
) -> Iterator[tuple[str, nn.Module, nn.Module | None]]:
    """Yield every layer with the one it takes over; residual blocks that are new have none.

    Blocks and other layers are each matched in their order, so that new blocks come last in
    their scale.
    """
    yield path, layer, other
    rest = list(other.children())
    for name, child in layer.named_children():
        is_block = isinstance(child, ResidualBlock)
        found = next((each for each in rest if isinstance(each, ResidualBlock) == is_block), None)
        if found is None:
            if not is_block:
                raise WeightsError(f"the other network has no layer '{path}{name}'.")
            yield f"{path}{name}.", child, None
            continue
        rest.remove(found)
        yield from _counterparts(child, found, f"{path}{name}.")
    if rest:
        raise WeightsError(
            f"the other network has more layers in '{path.rstrip('.')}': a network starts from "
            "one that is as deep or shallower."
        )


def _own_tensors(layer: nn.Module) -> list[str]:
    """List the tensors of one layer by name, constrained ones by the name of their values."""
    if isinstance(layer, parametrize.ParametrizationList):
        return []
    keys = [*layer._parameters, *layer._buffers]
    if parametrize.is_parametrized(layer):
        keys += layer.parametrizations  # type: ignore[arg-type]
    return [key for key in keys if getattr(layer, key) is not None]


def _widened(values: Tensor, drawn: Tensor, layer: nn.Module, name: str) -> Tensor:
    """Return `drawn` with `values` in place of its first channels.

    Kernels from new channels to old ones are zero, so that the old ones do not change; those to
    new channels stay as drawn, so that there is something to learn from.
    """
    wider = drawn.clone()
    if values.ndim > 1:
        outputs = 1 if isinstance(layer, _ConvTransposeNd) else 0
        wider.narrow(outputs, 0, min(values.shape[outputs], wider.shape[outputs])).zero_()
    corner = wider[tuple(slice(size) for size in values.shape[:2])]
    if corner.shape != values.shape:
        raise WeightsError(
            f"'{name}' has shape {tuple(values.shape)}, which does not fit into "
            f"{tuple(drawn.shape)}: a network starts from one that is as wide or narrower."
        )
    corner.copy_(values)
    return wider
