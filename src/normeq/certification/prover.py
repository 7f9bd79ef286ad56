"""The certificate of a network: its public door."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from normeq.certification.certificate import Certificate, Status
from normeq.certification.measurement import TOLERATED, measure, otherwise
from normeq.certification.propagation import Propagation, propagate
from normeq.certification.shadow import ANY, PROPERTIES, Culprit, Shadow, near, span, uniform
from normeq.certification.tracing import Untraceable, trace
from normeq.errors import UsageError
from normeq.nn.inputs import image_channels

Example = Tensor | Sequence[Any]

#: Height and width of the image made up where no example is given.
EXAMPLE_SIZE = (32, 48)


def certify(module: nn.Module, example: Example | None = None) -> Certificate:
    """Prove ``f(λ·y + μ, λ·σ) = λ·f(y, σ) + μ``, or name the operations that break it.

    Scale degree and shift coefficient of every element of every tensor are propagated through
    the operations of the network, as traced by torch.export. What is called proven holds for
    every image of the example's shape, every gain and every offset, up to rounding, which the
    certificate's `bound` states. A few gains and offsets are measured, too: what does not agree
    with the proof is not called proven.

    Parameters
    ----------
    module
        Any network. Its mode matters: batch norm and dropout act differently in training.
    example
        An image batch to trace with, or the network's arguments: first the images, then anything
        else, in which tensors and numbers stand for noise levels. Only shapes matter, not values.
        By default one image of 32 x 48 pixels with as many channels as the first layer takes.

    Examples
    --------
    >>> from torch import nn
    >>> from normeq.nn import AffineConv2d, SortPool
    >>> net = nn.Sequential(AffineConv2d(1, 4, 3, padding=1), SortPool(), AffineConv2d(4, 1, 1))
    >>> certificate = certify(net)
    >>> certificate.norm
    <Status.PROVEN: 'proven'>
    >>> net[1] = nn.ReLU()
    >>> [(c.path, c.operation, c.property) for c in certify(net).culprits]
    [('1', 'relu', 'shift')]
    """
    args = arguments(module, example)
    try:
        program = trace(module, args)
    except Untraceable as error:
        refuse_unfit(module, args)
        return _untraceable(str(error))
    outcome = _run(program, args)
    culprits, statuses = [], {}
    for which in PROPERTIES:
        blamed = outcome.culprits(which)
        wrong = _wrong_at_the_end(outcome.outputs, which)
        found = blamed + [c for c in wrong if not blamed or c.operation != "output"]
        certain = [culprit for culprit in found if not culprit.unknown]
        broken = Status.BROKEN if certain else Status.UNKNOWN
        statuses[which] = broken if found else Status.PROVEN
        culprits += found
    bound = float("inf")
    if Status.PROVEN in statuses.values():
        measured = measure(module, args)
        for which, deviation in measured.errors.items():
            if statuses[which] is Status.PROVEN and not deviation < TOLERATED:
                statuses[which] = Status.UNKNOWN
                culprits.append(otherwise(which, deviation))
        bound = measured.bound if statuses["shift"] is Status.PROVEN else bound
    ordered = _once_each(culprits)
    return Certificate(statuses["scale"], statuses["shift"], ordered, bound, tuple(outcome.records))


def send(module: nn.Module, args: Sequence[Any]) -> Propagation | None:
    """Send the laws of the arguments through a network; None if it cannot be traced."""
    try:
        return _run(trace(module, args), args)
    except Untraceable:
        return None


def _run(program: torch.export.ExportedProgram, args: Sequence[Any]) -> Propagation:
    return propagate(program, _shadows(args), torch.finfo(args[0].dtype).eps)


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


def _made_up(module: nn.Module, like: Tensor) -> list[Any]:
    """Make up arguments that a network takes: an image, and what it is told about the noise."""
    declared = image_channels(module)
    if declared is None:
        raise UsageError(
            f"{type(module).__name__} does not tell the shape of its input: pass an example."
        )
    side = getattr(module, "config", {}).get("image_size")
    size = (side, side) if isinstance(side, int) else EXAMPLE_SIZE
    for channels in dict.fromkeys((declared, 1, 3)):
        image = like.new_zeros(1, channels, *size)
        for args in (
            [image, *_noise_maps(module, image)],
            [image],
            [image, like.new_full((1,), 0.1)],
        ):
            if _trouble(module, args) is None:
                return args
    return [like.new_zeros(1, declared, *size)]


def _noise_maps(module: nn.Module, image: Tensor) -> list[Tensor]:
    """Make up the maps of a network that declares them, so that the proof covers them."""
    if getattr(module, "takes_sigma", "never") == "never":
        return []
    maps = image.new_full((1, 3, *image.shape[-2:]), 0.1)
    return (
        [maps[:, :1], maps[:, 1:]] if getattr(module, "takes_correlation", False) else [maps[:, :1]]
    )


def _trouble(module: nn.Module, args: Sequence[Any]) -> Exception | None:
    """Return what a copy of the network raises when it is called."""
    try:
        with torch.no_grad():
            copy.deepcopy(module)(*args)
    except Exception as error:
        return error
    return None


def _shadows(args: Iterable[Any]) -> Iterable[Shadow | None]:
    """Yield the laws of the arguments: an image first, then noise levels."""
    for index, part in enumerate(tree_leaves(args)):
        if not isinstance(part, Tensor):
            yield None
        elif part.is_floating_point():
            yield uniform(part.shape, 1.0, 0.0 if index else 1.0, seed=index)
        else:
            yield uniform(part.shape, 0.0, 0.0, seed=index)


def _wrong_at_the_end(outputs: Sequence[Shadow], which: str) -> list[Culprit]:
    """Judge lawful outputs: they must be images, of degree and coefficient one."""
    found: set[Culprit] = set()
    for output in outputs:
        if which == "scale":
            wrong = ~((output.d == 1) | (output.d == ANY))
            text = f"the output has degree {span(output.d)} instead of 1."
            suspects = output.scale.suspects
        else:
            wrong = ~near(output.c, 1.0, output.slack)
            text = f"the output moves by {span(output.c)} times the offset."
            suspects = output.shift.suspects
        if wrong.any():
            end = Culprit("", "output", which, text, "see the operations before it", order=10**9)  # type: ignore[arg-type]
            found |= suspects or {end}
    return sorted(found, key=lambda culprit: (culprit.order, culprit.reason))


def _once_each(culprits: Iterable[Culprit]) -> tuple[Culprit, ...]:
    """Order culprits, each once for a module that is used several times."""
    seen: dict[tuple[str, ...], Culprit] = {}
    for culprit in sorted(culprits, key=lambda culprit: (culprit.order, culprit.reason)):
        in_words = re.sub(r"[-+.\de]*\d", "#", culprit.reason)
        key = (culprit.path, culprit.operation, culprit.property, in_words)
        seen.setdefault(key, culprit)
    return tuple(seen.values())


def refuse_unfit(module: nn.Module, args: Sequence[Any]) -> None:
    """Refuse an example that the network itself cannot take."""
    error = _trouble(module, args)
    if error is not None:
        shapes = ", ".join(str(tuple(a.shape)) for a in args if isinstance(a, Tensor))
        raise UsageError(
            f"{type(module).__name__} does not take an input of shape {shapes} ({error}): "
            "pass an example that it does take."
        ) from error


def _untraceable(reason: str) -> Certificate:
    """Return the certificate of a network that cannot be traced."""
    culprits = tuple(
        Culprit(
            "",
            "torch.export",
            which,
            f"the network cannot be traced ({reason}).",
            "no control flow that depends on the image's values, "
            "or normeq.normalized around the network",
            unknown=True,
        )
        for which in PROPERTIES
    )
    return Certificate(Status.UNKNOWN, Status.UNKNOWN, culprits, float("inf"), ())
