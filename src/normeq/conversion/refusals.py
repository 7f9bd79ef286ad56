"""What cannot be converted, refused in sentences that name the line of the user's code."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from normeq.certification import Certificate, Culprit, Status
from normeq.certification.examples import trouble
from normeq.certification.prover import send
from normeq.errors import UsageError, reason
from normeq.nn.copies import fresh, private_copy
from normeq.nn.own_source import located, raising_line

#: Forms that go around a network, whatever it does.
_AROUND = ("norm-equiv-wrapped", "norm-equiv-local")


def refuse_scripts(module: nn.Module) -> None:
    """Refuse a network that contains compiled code instead of layers."""
    if any(isinstance(part, torch.jit.ScriptModule) for part in module.modules()):
        raise UsageError(
            f"{located(module)} contains a ScriptModule, which has no layers to convert: "
            "convert the network that was scripted."
        )


def refuse_other_outputs(module: nn.Module, args: list[Any], to: str) -> None:
    """Refuse a network whose output has no units, or cannot be brought back to the image's."""
    out = _output(module, args)
    real = [_is_real(leaf) for leaf in tree_leaves(out)]
    if any(real) and (_is_real(out) or to not in _AROUND):
        return
    if isinstance(out, Tensor):
        kind, way_out = f"{out.dtype} numbers", "let it return what they are made of"
    else:
        kind, way_out = f"a {type(out).__name__}", "let it return one of its tensors"
    wanted = "one tensor of real numbers" if to in _AROUND else "real numbers"
    raise UsageError(
        f"{located(module)} returns {kind}: only {wanted} can be brought back to the units of the "
        f"image, so {way_out}."
    )


def refuse_misfit(module: nn.Module, args: list[Any], to: str) -> None:
    """Refuse a network to whose output no local mean can be added."""
    name, shape = located(module), tuple(args[0].shape)
    others = "'norm-equiv' or 'norm-equiv-wrapped'"
    if not 3 <= len(shape) <= 5:
        raise UsageError(
            f"an input of shape {shape} has no local mean, which the form {to} needs: convert "
            f"{name} to {others}, or pass an example of shape (N, C, *spatial) with one to three "
            "spatial axes."
        )
    out = _output(module, args)
    if not isinstance(out, Tensor) or out.ndim != len(shape) or len(out) != shape[0]:
        kind = f"of shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
        raise UsageError(
            f"the output of {name} is not an image ({kind}), to which the form {to} could add the "
            f"local mean: convert it to {others}."
        )


def refuse_without_maps(module: nn.Module, wrapped: nn.Module, args: list[Any]) -> None:
    """Refuse a network that takes a noise level for a whole image only."""
    error = trouble(private_copy(wrapped).eval(), args)
    if error is not None:
        line = raising_line(error)
        raise UsageError(
            f"{located(module)} takes a noise level for the whole image, but the form "
            "norm-equiv-local measures every pixel in units of its own surroundings, which turns "
            f"the level into a map ({f'{line}: ' if line else ''}{reason(error)}): let it take a "
            "map, or convert it to 'norm-equiv-wrapped'."
        ) from error


def refuse_unproven(module: nn.Module, args: list[Any], to: str, certificate: Certificate) -> None:
    """Refuse a network of which some operations have no counterpart, naming them."""
    status = certificate.scale if to == "scale-equiv" else certificate.norm
    if status is Status.PROVEN:
        return
    wanted = ("scale",) if to == "scale-equiv" else ("scale", "shift")
    left = [culprit for culprit in certificate.culprits if culprit.property in wanted]
    first, name = left[0], located(module)
    lines = _SourceLines(module, args)
    names = dict.fromkeys(f"{c.operation} in {lines.place(c)}" for c in left)
    listed = "; ".join(list(names)[:3]) + ("; ..." if len(names) > 3 else "")
    if to in _AROUND or first.operation == "measurement":
        raise UsageError(
            f"{name} in the form {to} cannot be proven, because of {listed}: "
            f"{first.reason} Fix: {first.fix}."
        )
    if first.operation == "torch.export":
        why = first.reason.replace("the network", "it").rstrip(".")
        at = f" at {first.line}" if first.line else ""
        raise UsageError(
            f"{name} cannot be made {to}, because {why}{at}: "
            "convert it to 'norm-equiv-wrapped' or 'norm-equiv-local', which take any network."
        )
    raise UsageError(
        f"{name} cannot be made {to}, because there is no counterpart for: {listed}. Convert it to "
        "'norm-equiv-wrapped', which takes any network of an image, or of an image and a noise "
        f"level, or change these ({first.reason} Fix: {first.fix})."
    )


class _SourceLines:
    """Where the network's source first calls each operation of each module.

    The forward pass of a twin may have been written anew, with lines that mean nothing to a user,
    and layers in the place of operations.
    """

    def __init__(self, module: nn.Module, args: list[Any]) -> None:
        outcome = send(private_copy(module).eval(), args)
        records = [] if outcome is None else outcome.records
        self._lines = {(r.path, r.operation): r.line for r in reversed(records)}
        self._paths = {path for path, _ in module.named_modules()}

    def place(self, culprit: Culprit) -> str:
        """Say where a culprit is: its module, and the line of source that calls it."""
        path = re.sub(r"^(inner(\.|$))+", "", culprit.path)  # what is wrapped is called `inner`
        operation = culprit.operation
        while path not in self._paths:  # a layer such as add_affineresidual stands for a call
            path, _, made = path.rpartition(".")
            operation = made.partition("_")[0]
        line = culprit.line or self._lines.get((path, operation), "")
        where = path or "the network itself"
        return f"{where} ({line})" if line else where


def _output(module: nn.Module, args: list[Any]) -> Any:
    with torch.no_grad():
        return private_copy(module)(*fresh(args))


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
