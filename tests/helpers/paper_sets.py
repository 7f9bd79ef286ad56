"""Small sets of images under the names that the paper's experiments look for."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from skimage import data

import normeq
from normeq.images import write
from normeq.reproduce.classifiers import Classifier
from normeq.reproduce.scale import Scale
from normeq.training.initial import new_network

PHOTOGRAPHS = ("camera", "coins", "moon")


def _photographs(folder: Path, side: int = 48) -> None:
    for name in PHOTOGRAPHS:
        image = getattr(data, name)()
        write(folder / f"{name}.png", image[100 : 100 + side, 100 : 100 + side])


def _numbered(folder: Path) -> None:
    """Write two files as they are numbered in Set12: its House and its Monarch."""
    for number, image in ((2, data.camera()), (5, data.coins())):
        write(folder / f"{number:02d}.png", image[80 : 80 + 48, 100 : 100 + 48])


def _pairs(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("Confocal_A_1", "TwoPhoton_B_1"):
        clean = data.camera()[60:124, 200:264]
        noisy = np.clip(clean + rng.normal(0, 10, clean.shape), 0, 255).round().astype(np.uint8)
        for part, image in (("raw", noisy), ("gt", clean)):
            (folder / part).mkdir(exist_ok=True)
            write(folder / part / f"{name}.png", image)


def _digits(folder: Path, images: int = 24) -> None:
    """Write idx files of noise, gzipped for the test images, with labels 0 to 9."""
    rng = np.random.default_rng(0)
    for stem in ("train", "t10k"):
        pixels = rng.integers(0, 256, (images, 28, 28), np.uint8)
        labels = rng.integers(0, 10, images, np.uint8)
        for name, array in (("images-idx3", pixels), ("labels-idx1", labels)):
            shape = np.array(array.shape, ">u4").tobytes()
            data = bytes((0, 0, 8, array.ndim)) + shape + array.tobytes()
            if stem == "t10k":
                (folder / f"{stem}-{name}-ubyte.gz").write_bytes(gzip.compress(data))
            else:
                (folder / f"{stem}-{name}-ubyte").write_bytes(data)


def _camera_pairs(folder: Path) -> None:
    rng = np.random.default_rng(0)
    clean = data.astronaut()[:64, 200:264]
    noisy = np.clip(clean + rng.normal(0, 10, clean.shape), 0, 255).round().astype(np.uint8)
    write(folder / "a_mean.png", clean)
    write(folder / "a_real.png", noisy)


_SETS: dict[str, Callable[[Path], None]] = {
    "bsd400": _photographs,
    "bsd32": _photographs,
    "bsd68": _photographs,
    "set12": _numbered,
    "fmd": _pairs,
    "cc15": _camera_pairs,
    "mnist": _digits,
    "fashion_mnist": _digits,
}


def write_sets(folder: Path, *names: str) -> Path:
    """Write some of the sets into a folder."""
    for name in names or _SETS:
        (folder / name).mkdir(parents=True)
        _SETS[name](folder / name)
    return folder


def write_random_weights(folder: Path, *experiments: str) -> Path:
    """Write the networks of experiments as if they had been trained, at the tiny scale."""
    folder.mkdir(exist_ok=True)
    for experiment in experiments:
        module = import_module(f"normeq.reproduce.{experiment.replace('-', '_')}")
        for each in module.networks(Scale.TINY):
            torch.manual_seed(each.seed)
            if isinstance(each, Classifier):
                net = each.create(Scale.TINY, 28)
            else:
                net = new_network(each.recipe(Scale.TINY).network)
            normeq.save(net, folder / f"{each.name}.safetensors", {"hours": 0.5})
    return folder
