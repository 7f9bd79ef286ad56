"""Packages for the programs of bioimage.io: deepImageJ, ilastik, napari and others.

A package is a zip file: a description (``rdf.yaml``, format 0.5), weights as TorchScript and as
ONNX, an input with its output for tests, a picture and a text.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import torch
from numpy.typing import NDArray

from normeq import __version__
from normeq._support.photograph import sample_photograph
from normeq.errors import UsageError
from normeq.exporting.agreement import check_agreement
from normeq.exporting.onnx_writer import OPSET, checked_onnx
from normeq.exporting.open_sizes import ExportedNetwork, trace_open
from normeq.exporting.torchscript import load_torchscript, torchscript_bytes
from normeq.models import shipped

_FORMAT = "0.5.3"
_CITATION = {
    "text": "S. Herbreteau, E. Moebel, C. Kervrann: Normalization-Equivariant Neural Networks with "
    "Application to Image Denoising. NeurIPS 2023.",
    "url": "https://github.com/sherbret/normalization_equivariant_nn",
}
# Noise of the picture and the test, for values in [0, 1].
_SIGMA = 0.1


def halo_of(net: ExportedNetwork) -> int:
    """Return how much wider than its result a tile has to be, on each side.

    It covers the receptive field, and is a multiple of the stride: tiles whose sides are multiples
    of the stride then start on multiples of it, so that tiled equals whole.
    """
    if net.receptive_field is None:
        raise UsageError(
            f"{net.name} has no finite receptive field, and a package for bioimage.io must state "
            "one: set the network's attribute receptive_field, or choose another format."
        )
    return max(1, -(-net.receptive_field // net.stride)) * net.stride


def write_package(net: ExportedNetwork, path: Path) -> None:
    """Write a network as a package; the caller gives a temporary name."""
    try:
        import yaml
    except ImportError as error:
        raise UsageError(
            "packages for bioimage.io need PyYAML: pip install 'normeq[bioimageio]'."
        ) from error
    if net.map_channels:
        raise UsageError(
            "packages for bioimage.io take only the image: leave out with_sigma (--with-sigma)."
        )
    halo = halo_of(net)
    scripted = torchscript_bytes(trace_open(net))
    check_agreement(net, load_torchscript(scripted))
    noisy, denoised = _example(net, 2 * halo + 4 * net.stride)
    files = {
        "weights.pt": scripted,
        "weights.onnx": checked_onnx(net),
        "test_input.npy": _npy(noisy),
        "test_output.npy": _npy(denoised),
        "sample_input.tif": _tiff(noisy),
        "sample_output.tif": _tiff(denoised),
        "cover.png": _cover(net),
        "README.md": _text(net, halo).encode(),
    }
    about = _description(net, halo, files)
    files["rdf.yaml"] = yaml.safe_dump(about, sort_keys=False, allow_unicode=True).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in files.items():
            package.writestr(name, data)


def _description(net: ExportedNetwork, halo: int, files: dict[str, bytes]) -> dict[str, Any]:
    """Return the contents of rdf.yaml."""

    def entry(name: str, **more: Any) -> dict[str, Any]:
        return {"source": name, "sha256": hashlib.sha256(files[name]).hexdigest(), **more}

    ours = net.name in shipped()
    torch_version = torch.__version__.partition("+")[0]
    names = ["gray"] if net.channels == 1 else [f"channel{n}" for n in range(net.channels)]
    before = [{"type": "batch"}, {"type": "channel", "channel_names": names}]
    size = {"min": 2 * halo + net.stride, "step": net.stride}
    values = [{"type": "float32", "range": [None, None]}]
    about: dict[str, Any] = {
        "type": "model",
        "format_version": _FORMAT,
        "name": _permitted(f"normeq {net.name}"),
        "description": "Removes noise from images; "
        + ("in any units" if net.law == "norm" else "see the documentation for units"),
        "authors": [{"name": "The normeq developers" if ours else f"Author of {net.name}"}],
        "cite": [_CITATION],
        "license": "MIT",
        "documentation": "README.md",
        "covers": ["cover.png"],
        "tags": ["denoising", "image-restoration", "pytorch", "2d"],
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "inputs": [
            {
                "id": "image",
                "axes": [*before, *({"type": "space", "id": a, "size": size} for a in "yx")],
                "data": values[0],
                "preprocessing": [{"id": "ensure_dtype", "kwargs": {"dtype": "float32"}}],
                "test_tensor": entry("test_input.npy"),
                "sample_tensor": entry("sample_input.tif"),
            }
        ],
        "outputs": [
            {
                "id": "denoised",
                "axes": [*before, *(_output_axis(axis, halo) for axis in "yx")],
                "data": values[0],
                "test_tensor": entry("test_output.npy"),
                "sample_tensor": entry("sample_output.tif"),
            }
        ],
        "weights": {
            "torchscript": entry("weights.pt", pytorch_version=torch_version),
            "onnx": entry("weights.onnx", opset_version=OPSET, parent="torchscript"),
        },
        "config": {"normeq": {"version": __version__, "law": net.law, "digest": net.digest}},
    }
    if not ours:
        del about["license"]  # its author has to choose one
    return about


def _output_axis(axis: str, halo: int) -> dict[str, Any]:
    of_input = {"tensor_id": "image", "axis_id": axis}
    return {"type": "space", "id": axis, "halo": halo, "size": of_input}


def _permitted(name: str) -> str:
    """Return a name of the characters that the format permits."""
    return re.sub(r"[^A-Za-z0-9_+\- ()]", " ", name)[:128]


@torch.no_grad()
def _example(net: ExportedNetwork, side: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a noisy photograph and what the network makes of it."""
    clean = sample_photograph(side)
    noise = np.random.default_rng(0).standard_normal((net.channels, side, side))
    noisy = (clean + _SIGMA * noise)[None].astype(np.float32)
    return noisy, net(torch.from_numpy(noisy)).numpy()


def _npy(values: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def _tiff(values: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values.squeeze(), photometric="minisblack")
    return buffer.getvalue()


def _cover(net: ExportedNetwork) -> bytes:
    """Return a picture, twice as wide as high: the noisy photograph, and the denoised one."""
    from PIL import Image

    both = np.concatenate([image[0, 0] for image in _example(net, 256)], axis=1)
    buffer = io.BytesIO()
    Image.fromarray(np.rint(both.clip(0, 1) * 255).astype(np.uint8)).save(buffer, "png")
    return buffer.getvalue()


_UNITS = {
    "norm": "The network is normalization-equivariant: for every gain λ > 0 and offset μ, "
    "f(λ·y + μ) = λ·f(y) + μ. Use it in the image's own units, whatever they are; no "
    "normalisation is needed, and none changes the result.",
    "scale": "The network is scale-equivariant, f(λ·y) = λ·f(y), but offsets matter: subtract the "
    "value of black before you use it.",
    "none": "The network depends on the units of the image: use those it was trained with.",
}


def _text(net: ExportedNetwork, halo: int) -> str:
    """Return the documentation."""
    return f"""# normeq {net.name}

A network that removes noise from images, exported by normeq {__version__}
(`normeq export {net.name} -o FILE.zip --to bioimageio`).

## Units

{_UNITS[net.law if net.law in _UNITS else "none"]}

## Tiles

A pixel of the result depends on the {net.receptive_field} pixels to each side of it. The halo of
{halo} covers them and is a multiple of the network's stride, {net.stride}: with it, tiles give what
the whole image gives.

## Validation

Compare a result with its input: what was removed should be noise without structure.
`test_input.npy` and `test_output.npy` are a photograph with white noise (standard deviation
{_SIGMA} for values in [0, 1]) and the result. Weights are the same in both formats, and were
compared with PyTorch at sizes from 1 x 1 on; they agree within 1e-4 of the image's standard
deviation.
"""
