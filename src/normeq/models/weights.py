"""Weights in and out: safetensors whose header says which network they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from normeq._support.atomic import replacing
from normeq._support.near_misses import suggestion
from normeq.errors import NormeqError, UsageError, WeightsError, reason
from normeq.models.network import Network, Wrapped
from normeq.models.registry import create
from normeq.models.releases import installed_name

_FORMAT = 1
# Characters of the header, most of which is the card: a hundred times what ours have.
_LONGEST_HEADER = 2**20


def save(net: Network | Wrapped, path: str | os.PathLike[str], card: dict[str, Any]) -> None:
    """Write a network of the registry to one safetensors file.

    Parameters
    ----------
    net
        A network built by `create`.
    path
        The file, written whole or not at all.
    card
        What is known of the weights, as plain data: how they were trained, on what, scores.

    Examples
    --------
    >>> import normeq, tempfile, os
    >>> net = normeq.create("fdncnn", width=4, depth=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "net.safetensors")
    ...     normeq.save(net, path, {"data": "none"})
    ...     normeq.load(path).card
    {'data': 'none'}
    """
    from safetensors.torch import save as to_bytes

    if not getattr(net, "config", None):  # a twin, or a network of someone else
        raise UsageError(
            "only networks built by normeq.create can be saved with normeq.save; a twin is "
            "saved with normeq.conversion.save_twin."
        )
    about = {
        "format": _FORMAT,
        "architecture": net.architecture,
        "config": net.config,
        "card": card,
    }
    tensors = {name: tensor.detach().contiguous() for name, tensor in net.state_dict().items()}
    with torch.device("meta"):  # names only
        expected = create(net.architecture, **net.config).state_dict()
    if tensors.keys() != expected.keys():
        raise UsageError(
            "the network has tensors that normeq.create did not give it; if it was folded or "
            "fused, save the network it came from."
        )
    data = to_bytes(tensors, {"normeq": json.dumps(about, ensure_ascii=False)})
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(data)


def load(source: str | os.PathLike[str]) -> Network | Wrapped:
    """Build the network that a weights file holds, ready for use (in eval mode).

    Parameters
    ----------
    source
        The name of shipped weights (see `shipped`), in any case, perhaps with a version
        (``"default@1"``), or the path of a file written by `save`.
    """
    path = _find(source)
    about, tensors = _read(path)
    try:
        with torch.device("meta"):  # sizes that the file does not back cost no memory
            net = create(about["architecture"], **about["config"])
        _check_tensors(tensors, net.state_dict())
        # Cloned: those of a file are not aligned in memory, which can change the last digit.
        net.load_state_dict({k: tensor.clone() for k, tensor in tensors.items()}, assign=True)
    except (NormeqError, RuntimeError, KeyError, TypeError) as error:
        raise WeightsError(
            f"{path} does not contain the network it names: {reason(error)}"
        ) from error
    net.card = about["card"]
    return net.eval()


def read_card(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what is known of some weights, without reading the weights themselves.

    Parameters
    ----------
    source
        See `load`.

    Examples
    --------
    >>> read_card("default")["description"]
    '...denoiser...'
    """
    path = _find(source)
    with _opened(path) as (about, _):
        card: dict[str, Any] = about["card"]
    return card


def shipped() -> list[str]:
    """List the names of the weights inside the package."""
    folder = resources.files("normeq") / "weights"
    return sorted(
        entry.name.removesuffix(".safetensors")
        for entry in folder.iterdir()
        if entry.name.endswith(".safetensors")
    )


def _find(source: str | os.PathLike[str]) -> Path:
    """Turn a shipped name or a path into the path of a file that exists."""
    name = installed_name(str(source).lower())
    if name in shipped():
        return Path(str(resources.files("normeq") / "weights" / f"{name}.safetensors"))
    path = Path(source)
    if not path.is_file():
        raise UsageError(
            f"there is no weights file {source}; shipped with normeq: {', '.join(shipped())}."
            f"{suggestion(name, shipped())}"
        )
    return path


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read header and tensors."""
    with _opened(path) as (about, file):
        return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """Give header and open file, with one sentence for every way a file can be wrong."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if "normeq-twin" in header:
                raise WeightsError(
                    f"{path} contains a converted twin, which your own code has to build: load it "
                    "with normeq.conversion.load_twin(path, network)."
                )
            if "normeq" not in header:
                raise WeightsError(
                    f"{path} was not written by normeq.save: its header names no network."
                )
            yield _parse_header(header["normeq"], path), file
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} is not a complete safetensors file: {error}") from error


def _parse_header(text: str, path: Path) -> dict[str, Any]:
    """Read what a file says of its network: plain data of a limited size."""
    if len(text) > _LONGEST_HEADER:
        raise WeightsError(
            f"{path} has a header of {len(text):,} characters, more than {_LONGEST_HEADER:,}."
        )
    try:
        about: dict[str, Any] = json.loads(text)
        version = about["format"]
        about.setdefault("card", {})
        tables = [about, about["card"], about.get("config", {})]
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{path} has a damaged header: {reason(error)}") from error
    if version != _FORMAT:
        raise WeightsError(f"{path} has format {version}, newer than this normeq: upgrade it.")
    if not all(isinstance(table, dict) for table in tables) or not isinstance(
        about.get("architecture"), str
    ):
        raise WeightsError(f"{path} has a damaged header: its fields have the wrong types.")
    return about


def _check_tensors(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Refuse tensors that a network does not have, of other shapes, or that are not finite."""
    odd = sorted(tensors.keys() ^ expected.keys())
    if odd:
        where = "lacks" if odd[0] in expected else "has no place for"
        subject = "the file" if odd[0] in expected else "the network"
        raise WeightsError(f"{subject} {where} the tensor '{odd[0]}'.")
    for name, tensor in tensors.items():
        wanted = expected[name]
        if tensor.shape != wanted.shape:
            raise WeightsError(
                f"the tensor '{name}' has shape {tuple(tensor.shape)}, not {tuple(wanted.shape)}."
            )
        if tensor.is_floating_point() != wanted.is_floating_point() or tensor.is_complex():
            raise WeightsError(f"the tensor '{name}' has the type {tensor.dtype}.")
        refuse_not_finite(name, tensor)
    if len({tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}) > 1:
        raise WeightsError("the tensors have different floating point types.")


def refuse_not_finite(name: str, tensor: Tensor) -> None:
    """Refuse weights that are NaN or infinite."""
    if not tensor.isfinite().all():
        raise WeightsError(
            f"the tensor '{name}' contains NaN or infinite values: train again, or copy it again."
        )
