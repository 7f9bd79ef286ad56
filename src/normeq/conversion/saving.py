"""Converted twins in and out of files: their weights, and how they were converted."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from normeq._support.atomic import replacing
from normeq.conversion.changes import ConversionReport
from normeq.conversion.converter import convert
from normeq.errors import UsageError, WeightsError, reason
from normeq.nn.copies import private_copy
from normeq.nn.own_source import located

_FORMAT = 1
_LONGEST_HEADER = 2**20


def save_twin(
    twin: nn.Module,
    report: ConversionReport,
    path: str | os.PathLike[str],
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write a converted twin to one safetensors file: its weights and how it was converted.

    Parameters
    ----------
    twin
        What `normeq.convert` returned, trained further or not.
    report
        The report that came with it.
    path
        The file, written whole or not at all.
    card
        What else is known of it, as plain data.

    Examples
    --------
    >>> import os, tempfile, torch
    >>> from torch import nn
    >>> import normeq
    >>> net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
    >>> twin, report = normeq.convert(net, "norm-equiv-residual", torch.zeros(1, 1, 16, 16))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "twin.safetensors")
    ...     save_twin(twin, report, path)
    ...     again = load_twin(path, net)
    >>> torch.equal(again(torch.ones(1, 1, 9, 9)), twin(torch.ones(1, 1, 9, 9)))
    True
    """
    from safetensors.torch import save as to_bytes

    about = {
        "format": _FORMAT,
        "converted": {
            "to": report.to,
            "shapes": report.shapes,
            "norms in training": report.norms_in_training,
        },
        "card": dict(card or {}),
    }
    tensors = {name: value.detach().clone().contiguous() for name, value in _tensors(twin).items()}
    data = to_bytes(tensors, {"normeq-twin": json.dumps(about, ensure_ascii=False)})
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(data)


def load_twin(path: str | os.PathLike[str], network: nn.Module) -> nn.Module:
    """Convert a network as the twin in a file was converted, and give it the file's weights.

    Parameters
    ----------
    path
        A file written by `save_twin` or ``normeq convert``.
    network
        A network of the kind that was converted; its weights and its mode do not matter.
    """
    about, tensors = _read(Path(path))
    try:
        how = about["converted"]
        example = _example(how["shapes"], network)
        to = how["to"]
        network = _in_modes(network, how.get("norms in training", []))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WeightsError(f"{path} has a damaged header: {reason(error)}") from error
    twin, _ = convert(network, to, example)
    try:
        twin.load_state_dict(tensors)
    except RuntimeError as error:
        raise WeightsError(
            f"{path} does not contain a twin of {located(network)}: {reason(error)}"
        ) from error
    return twin.eval()


def _tensors(twin: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a twin; safetensors writes shared ones once for each name."""
    state = twin.state_dict()
    if not state:
        raise UsageError(f"{type(twin).__name__} has no weights to save.")
    return state


def _in_modes(network: nn.Module, norms_in_training: Sequence[str]) -> nn.Module:
    """Return a copy whose norms have the modes of those that were converted."""
    copied = private_copy(network).eval()
    for path in norms_in_training:
        copied.get_submodule(path).train()
    return copied


def _example(shapes: Sequence[Any], network: nn.Module) -> list[Any]:
    like = next((p for p in network.parameters() if p.is_floating_point()), torch.empty(0))
    return [like.new_full(tuple(int(n) for n in shape), 0.1) for shape in shapes]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get("normeq-twin", "")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} is not a complete safetensors file: {error}") from error
    if not header or len(header) > _LONGEST_HEADER:
        raise WeightsError(f"{path} was not written by normeq convert: its header names no twin.")
    try:
        about: dict[str, Any] = json.loads(header)
    except (json.JSONDecodeError, RecursionError) as error:
        raise WeightsError(f"{path} has a damaged header: {reason(error)}") from error
    return about, tensors
