"""Enclose the layers that a certificate still blames after everything else has been converted.

Norms with an epsilon, gates, squashing activations and attention have no counterpart of their own;
inside `normeq.nn.Enclosed` they see ratios and keep what they have learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from normeq.certification.prover import culprits_of
from normeq.certification.shadow import Culprit, Property
from normeq.conversion.network_editor import ATOMIC_LAYERS, NetworkEditor, fixed_arguments
from normeq.conversion.operations import (
    CLAMPS,
    class_name,
    norms_in_training,
    operation_names,
)
from normeq.nn import Enclosed
from normeq.nn.copies import private_copy


def enclose_culprits(
    editor: NetworkEditor, args: Sequence[Any], properties: Sequence[Property], *, offset: bool
) -> None:
    """Enclose every layer that breaks one of these properties, until none is left or none helps.

    A layer that is enclosed may uncover another, or clear one: kinds of layers are taken in turn.

    Parameters
    ----------
    editor
        The converted network, finished.
    args
        What it is called with.
    properties
        What it must keep.
    offset
        Whether features follow an offset, as in the affine form.
    """
    while culprits := _culprits(editor.root, args, properties):
        paths = _paths_to_enclose(editor.root, culprits)
        if not paths and not offset and not isinstance(editor.root, Enclosed):
            paths = [""]  # with an offset that would be the wrapped form: only its calls are
        if not paths:
            if offset and _convert_own_calls(editor, args, culprits):
                continue
            return
        fixed = fixed_arguments(editor.root, args)
        for path in paths:
            layer = editor.root.get_submodule(path)
            axis = 1 if getattr(layer, "batch_first", True) is False else 0
            enclosed = Enclosed(
                layer,
                editor.usual_size(path),
                fixed=fixed.get(path, ()),
                offset=offset,
                batch_axis=axis,
            )
            device = next((p.device for p in layer.parameters()), torch.device("cpu"))
            editor.replace(path, layer, enclosed.to(device), f"{class_name(layer)} of ratios")


def _culprits(
    root: nn.Module, args: Sequence[Any], properties: Sequence[Property]
) -> list[Culprit]:
    """List what breaks a property in use, or else in training, where statistics are learnt."""
    in_use = culprits_of(private_copy(root).eval(), args, properties)
    return in_use or (culprits_of(root, args, properties) if norms_in_training(root) else [])


def _convert_own_calls(
    editor: NetworkEditor, args: Sequence[Any], culprits: Iterable[Culprit]
) -> bool:
    """Enclose the calls in the network's own forward pass that are blamed; tell if there are any.

    Limits to a fixed range are left out: an equivariant network has none.
    """
    forward = editor.open_own_forward(args)
    if forward is None:
        return False
    names = {culprit.operation for culprit in culprits if not culprit.path}
    blamed = [
        node
        for node in forward.nodes
        if node.op in ("call_function", "call_method")
        and operation_names(node) & names
        and any(forward.is_feature(value) for value in (*node.args, *node.kwargs.values()))
    ]
    for node in blamed:
        if node.target in CLAMPS:
            forward.leave_out(node, node.all_input_nodes[0])
        else:
            forward.enclose(node, offset=True)
    editor.finish()
    return bool(blamed)


def _paths_to_enclose(root: nn.Module, culprits: Iterable[Culprit]) -> list[str]:
    """Return the innermost modules that hold the culprits, or the atomic layers around them.

    Enclosed layers are left as they are, and so is the network itself.
    """
    if isinstance(root, Enclosed):
        return []
    paths: dict[str, str] = {}
    for culprit in sorted(culprits, key=lambda culprit: culprit.order):
        parts = culprit.path.split(".") if culprit.path else []
        steps = [".".join(parts[: n + 1]) for n in range(len(parts))]
        layers = [(path, root.get_submodule(path)) for path in steps]
        if not layers or any(isinstance(layer, Enclosed) for _, layer in layers):
            continue
        atomic = next((path for path, layer in layers if isinstance(layer, ATOMIC_LAYERS)), None)
        innermost = [path for path, layer in layers if not isinstance(layer, nn.ModuleList)]
        path = atomic or innermost[-1]
        paths[path] = class_name(root.get_submodule(path))
    # What follows the first may be blamed for what that one did: it is judged again without it.
    first = next(iter(paths.values()), None)
    alike = [path for path, kind in paths.items() if kind == first]
    return [path for path in alike if not any(path.startswith(f"{other}.") for other in alike)]
