"""What a network is traced with: given or made-up arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.utils._pytree import tree_leaves, tree_map

from normeq.errors import UsageError, reason
from normeq.nn.copies import fresh, private_copy
from normeq.nn.inputs import image_channels, spatial_axes
from normeq.nn.own_source import located, raising_line

Example = Tensor | Sequence[Any]

#: The smallest images that are made up, by number of spatial axes; doubled until one fits.
SMALLEST = {1: (64,), 2: (16, 24), 3: (8, 8, 12)}


def arguments(module: nn.Module, example: Example | None) -> list[Any]:
    """Return the network's arguments, all of its numbers as tensors."""
    tensor = next((p for p in module.parameters() if p.is_floating_point()), torch.empty(0))
    if example is None:
        return _made_up(module, tensor)
    parts = [example] if isinstance(example, Tensor) else list(example)
    if not parts or not isinstance(parts[0], Tensor) or not parts[0].is_floating_point():
        raise UsageError("the example must be a tensor of images, or start with one.")

    def prepared(part: Any) -> Any:
        number = isinstance(part, int | float) and not isinstance(part, bool)
        if number or (isinstance(part, Tensor) and part.is_floating_point()):
            return torch.as_tensor(part, dtype=tensor.dtype, device=tensor.device)
        return part

    args: list[Any] = tree_map(prepared, parts)
    return args


def named_arguments(
    module: nn.Module, shape: Sequence[int] | None, values: Mapping[str, float]
) -> list[Any] | None:
    """Return an example of a given shape, with numbers for some of the network's arguments.

    None if nothing is given, so that an example is made up.
    """
    if shape is None and not values:
        return None
    image = arguments(module, None)[0] if shape is None else torch.zeros(*shape)
    parameters = list(inspect.signature(module.forward).parameters.values())[1:]
    unknown = [name for name in values if name not in {p.name for p in parameters}]
    if unknown:
        raise UsageError(
            f"{located(module)} does not take {unknown[0]!r}: after the image it takes "
            f"{', '.join(p.name for p in parameters) or 'nothing'}."
        )
    last = max((n for n, p in enumerate(parameters, 1) if p.name in values), default=0)
    rest = [values.get(p.name, p.default) for p in parameters[:last]]
    return [image, *rest]


def _made_up(module: nn.Module, like: Tensor) -> list[Any]:
    """Make up arguments that a network takes: an image, and a noise level if it asks for one."""
    declared = image_channels(module)
    if declared is None:
        raise UsageError(
            f"{located(module)} does not say what shape its input has: pass an example."
        )
    sizes = list(_sizes_to_try(module))
    for size in sizes:
        for channels in dict.fromkeys((declared, 1, 3)):
            image = like.new_zeros(1, channels, *size)
            for args in ([image], [image, like.new_full((1,), 0.1)]):
                if trouble(module, args) is None:
                    return args
    return [like.new_zeros(1, declared, *sizes[0])]


def _sizes_to_try(module: nn.Module) -> Iterator[tuple[int, ...]]:
    side = getattr(module, "config", {}).get("image_size")
    if isinstance(side, int):
        yield (side, side)
        return
    smallest = SMALLEST[spatial_axes(module)]
    for factor in (1, 2, 4):
        yield tuple(factor * length for length in smallest)


def refuse_unready(module: Any) -> None:
    """Refuse what is not a network, or not one that can be called yet."""
    if not isinstance(module, nn.Module):
        raise UsageError(f"{module!r} is not a network: pass a torch.nn.Module.")
    name = located(module)
    if any(isinstance(p, UninitializedParameter) for p in module.parameters()):
        raise UsageError(f"{name} has parameters without a shape: call it once first.")
    if any(part.is_meta for part in (*module.parameters(), *module.buffers())):
        raise UsageError(f"{name} is on the meta device, where weights have no values: load them.")


def trouble(module: nn.Module, args: Sequence[Any]) -> Exception | None:
    """Return what a copy of the network raises when it is called."""
    copied = private_copy(module)
    try:
        with torch.no_grad():
            out = copied(*fresh(args))
    except Exception as error:
        return error
    if not any(isinstance(leaf, Tensor) for leaf in tree_leaves(out)):
        return TypeError(f"it returns {type(out).__name__}, which contains no tensor")
    return None


def refuse_unfit(module: nn.Module, args: Sequence[Any]) -> None:
    """Refuse an example that the network itself cannot take."""
    error = trouble(module, args)
    if error is not None:
        shapes = ", ".join(str(tuple(a.shape)) for a in args if isinstance(a, Tensor))
        line = raising_line(error)
        raise UsageError(
            f"{located(module)} does not take an input of shape {shapes} "
            f"({type(error).__name__}{f' at {line}' if line else ''}: {reason(error)}): "
            "pass an example that it does take."
        ) from error
