"""Networks in other formats, each checked against PyTorch before it is kept."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import nn

from normeq._support.atomic import replacing
from normeq.denoising.names import resolve
from normeq.denoising.onnx_header import KEY
from normeq.denoising.onnx_network import OnnxNetwork
from normeq.errors import UsageError
from normeq.exporting.agreement import check_agreement
from normeq.exporting.bioimageio_package import write_package
from normeq.exporting.onnx_writer import checked_onnx, header_of
from normeq.exporting.open_sizes import ExportedNetwork, trace_open

_LOG = logging.getLogger(__name__)

ExportFormat = Literal["onnx", "torch-export", "bioimageio"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_SUFFIXES: dict[ExportFormat, str] = {
    "onnx": ".onnx",
    "torch-export": ".pt2",
    "bioimageio": ".zip",
}


def export(
    net: nn.Module | str,
    path: str | os.PathLike[str],
    to: ExportFormat = "onnx",
    *,
    with_sigma: bool = False,
) -> None:
    """Write a network for use elsewhere: ``exported(y) = net(y)`` up to rounding.

    The folded network is written (see `normeq.fold`), in single precision, for images of any
    size from one pixel up. Its output is compared with PyTorch's at several sizes before the file
    is kept.

    Parameters
    ----------
    net
        A network, of `normeq.create`, `normeq.load`, `normeq.convert` or your own, or a name
        (see `normeq.denoising.names.resolve`).
    path
        The file, written whole or not at all: ``.onnx``, ``.pt2`` or ``.zip``.
    to
        ``"onnx"``; ``"torch-export"``, which `torch.export.load` reads; or ``"bioimageio"``, a
        package for the programs of bioimage.io.
    with_sigma
        Whether the file takes the noise as inputs beside ``image``, for a network that does:
        ``sigma``, a map, and for some ``correlation``, two maps (see
        `normeq.models.DenoisingNetwork`). Without them the noise is not known.

    Examples
    --------
    >>> import os, tempfile, torch
    >>> import normeq
    >>> net = normeq.create("fdncnn", "norm-equiv", width=4, depth=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "mine.pt2")
    ...     normeq.export(net, path, to="torch-export")
    ...     again = torch.export.load(path).module()
    >>> image = torch.rand(1, 1, 13, 1)
    >>> torch.allclose(again(image), net(image), atol=1e-5)
    True
    """
    path = Path(path)
    if to not in EXPORT_FORMATS:
        raise UsageError(f"format {to!r} is unknown: use one of {', '.join(EXPORT_FORMATS)}.")
    if path.suffix.lower() != _SUFFIXES[to]:
        raise UsageError(f"{path}: for the format {to}, the name must end in {_SUFFIXES[to]}.")
    net, name = _named(net)
    exported = ExportedNetwork(net, with_sigma=with_sigma, name=name)
    _LOG.info("tracing %s for every size of image", exported.name)
    with replacing(path) as temporary:
        match to:
            case "onnx":
                temporary.write_bytes(checked_onnx(exported))
            case "torch-export":
                _write_torch_export(exported, temporary)
            case "bioimageio":
                write_package(exported, temporary)


def _named(net: nn.Module | str) -> tuple[nn.Module, str]:
    """Return a network and what messages call it."""
    if not isinstance(net, str):
        return net.eval(), str(getattr(net, "architecture", type(net).__name__))
    found = resolve(net)
    if not isinstance(found, nn.Module) or isinstance(found, OnnxNetwork):
        raise UsageError(f"{net} is not a PyTorch module, and only those can be exported.")
    return found, net


def _write_torch_export(net: ExportedNetwork, path: Path) -> None:
    program = trace_open(net)
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files={KEY: header_of(net).to_text()})
    with path.open("rb") as file:
        again = torch.export.load(file)
    check_agreement(net, again.module())
