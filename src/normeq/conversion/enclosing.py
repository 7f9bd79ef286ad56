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
from normeq.conversion.network_editor import ATOMIC_LAYERS, NetworkEditor
from normeq.conversion.operations import class_name
from normeq.nn import Enclosed

#: A layer that is enclosed may uncover another, or clear one: kinds of layers are taken in turn.
_ROUNDS = 16


def enclose_culprits(
    editor: NetworkEditor, args: Sequence[Any], properties: Sequence[Property], *, offset: bool
) -> None:
    """Enclose every layer that breaks one of these properties, until none is left or none helps.

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
    for _ in range(_ROUNDS):
        paths = _paths_to_enclose(editor.root, culprits_of(editor.root, args, properties))
        if not paths:
            return
        for path in paths:
            layer = editor.root.get_submodule(path)
            usual, axis = editor.usual_size(path), 0
            if getattr(layer, "batch_first", True) is False:
                axis = 1
            enclosed = Enclosed(layer, usual, offset=offset, batch_axis=axis)
            device = next((p.device for p in layer.parameters()), torch.device("cpu"))
            editor.replace(path, layer, enclosed.to(device), f"{class_name(layer)} of ratios")


def _paths_to_enclose(root: nn.Module, culprits: Iterable[Culprit]) -> list[str]:
    """Return the innermost modules that hold the culprits, or the atomic layers around them.

    The network itself cannot be enclosed, and enclosed layers are left as they are.
    """
    paths: dict[str, type[nn.Module]] = {}
    for culprit in sorted(culprits, key=lambda culprit: culprit.order):
        parts = culprit.path.split(".") if culprit.path else []
        steps = [".".join(parts[: n + 1]) for n in range(len(parts))]
        layers = [(path, root.get_submodule(path)) for path in steps]
        if not layers or any(isinstance(layer, Enclosed) for _, layer in layers):
            continue
        atomic = next((path for path, layer in layers if isinstance(layer, ATOMIC_LAYERS)), None)
        innermost = [path for path, layer in layers if not isinstance(layer, nn.ModuleList)]
        path = atomic or innermost[-1]
        paths[path] = type(root.get_submodule(path))
    # What follows the first may be blamed for what that one did: it is judged again without it.
    first = next(iter(paths.values()), None)
    alike = [path for path, kind in paths.items() if kind is first]
    return [path for path in alike if not any(path.startswith(f"{other}.") for other in alike)]
