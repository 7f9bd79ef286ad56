"""Ways to treat noise that is not white: what each gives on synthetic noise.

    python benchmarks/noise_methods.py --photos PHOTOS

compares, on photographs and synthetic microscopy scenes, in docs/data/noise-methods.csv:

- for noise that grows with the signal: the generalized Anscombe transform, and the map of sigma,
  around the same network;
- for correlated noise: the network that is told the correlation; every second pixel of every
  second row denoised as an image of its own, in which the noise is nearly white; whitening by the
  known spectrum; and the network for white noise as it is;
- for the planes of a stack: each by itself, and the mean of three, while the scene moves.

What is known about the noise is estimated from the image, as users would have it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
from noise_accuracy import Floats, blurred, contents, noise_of
from pages import DATA, DOCS, fill, table
from scipy import fft, ndimage
from tqdm import tqdm

import normeq
from normeq._support.tables import write_csv
from normeq.metrics import psnr
from normeq.noise import estimate_noise

SIDE = 256
#: Every how many of the images is used.
EVERY = 4
GAINS = (1.0, 4.0, 15.0)
BLURS = (0.5, 0.8, 1.2)
SIGMA = 20.0
#: Pixels by which the scene moves from one plane to the next.
MOVES = (0.0, 0.5, 1.0, 2.0)

Scores = Iterator[tuple[str, str, float]]


def score(result: Floats, clean: Floats) -> float:
    return psnr(result / 255, clean / 255)


def denoise(image: Floats, **options: object) -> Floats:
    return normeq.denoise(image.astype(np.float32), **options).astype(np.float64)


def by_map(image: Floats) -> Floats:
    """Tell the network the level of every pixel, from a first result."""
    variance = estimate_noise(image, cautious=True).variance(denoise(image))
    return denoise(image, model="default-real", sigma=np.sqrt(np.maximum(variance, 1e-6)))


def signal_dependent(clean: Floats, seed: int) -> Scores:
    for gain in GAINS:
        noisy = clean + noise_of(clean, gain, 2.0, seed)
        methods: dict[str, Callable[[Floats], Floats]] = {
            "transform": lambda image: denoise(image, noise="poisson-gaussian"),
            "map of sigma": by_map,
        }
        for name, method in methods.items():
            yield f"grows with the signal, gain {gain:g}", name, score(method(noisy), clean)


def by_phases(image: Floats) -> Floats:
    """Denoise the four images of every second pixel, each as white noise."""
    result = np.empty_like(image)
    for down in (0, 1):
        for across in (0, 1):
            phase = np.s_[down::2, across::2]
            result[phase] = denoise(image[phase], noise="gaussian")
    return result


def by_whitening(image: Floats) -> Floats:
    """Filter the image until its noise is white, denoise it, and undo the filter."""
    table = np.array(estimate_noise(image).correlation.autocorrelation)
    down, across = (2 * np.pi * fft.fftfreq(size) for size in image.shape)
    waves = [
        np.where(np.arange(len(lags)) == 0, 1.0, 2.0)
        * np.cos(np.outer(angles, np.arange(len(lags))))
        for angles, lags in ((down, table), (across, table[0]))
    ]
    spectrum = waves[0] @ table @ waves[1].T
    gains = np.sqrt(np.maximum(spectrum, 0.01 * spectrum.max()))
    white = fft.ifft2(fft.fft2(image) / gains).real
    return fft.ifft2(fft.fft2(denoise(white, noise="gaussian")) * gains).real


def correlated(clean: Floats, seed: int) -> Scores:
    for width in BLURS:
        noisy = clean + blurred(noise_of(clean, 0.0, SIGMA, seed), width)
        methods: dict[str, Callable[[Floats], Floats]] = {
            "told the correlation": denoise,
            "every second pixel": by_phases,
            "whitened": by_whitening,
            "as white noise": lambda image: denoise(image, noise="gaussian"),
        }
        for name, method in methods.items():
            yield f"blurred by {width:g} pixels", name, score(method(noisy), clean)


def stacks(clean: Floats, seed: int) -> Scores:
    for move in MOVES:
        planes = [
            ndimage.shift(clean, (0, step * move), order=1, mode="nearest") for step in (-1, 0, 1)
        ]
        noisy = [
            plane + noise_of(plane, 0.0, SIGMA, seed + 100 * i) for i, plane in enumerate(planes)
        ]
        inner = np.s_[:, 4:-4]
        results = {
            "each plane by itself": denoise(noisy[1]),
            "mean of three planes, denoised": denoise(np.mean(noisy, 0)),
            "mean of three denoised planes": np.mean([denoise(plane) for plane in noisy], 0),
        }
        for name, result in results.items():
            yield f"stack, {move:g} pixels a plane", name, score(result[inner], clean[inner])


def measure(photos: Path) -> list[dict[str, str]]:
    """Return a row for each kind of noise and method: the mean over the images of each content."""
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    for number, (content, image) in enumerate(tqdm(list(contents(photos))[::EVERY])):
        clean = image[:SIDE, :SIDE]
        for kind in (signal_dependent, correlated, stacks):
            for noise, method, found in kind(clean, number):
                scores.setdefault((noise, method), {}).setdefault(content, []).append(found)
    return [
        {"noise": noise, "method": method}
        | {content: f"{fmean(found):.2f}" for content, found in by_content.items()}
        for (noise, method), by_content in scores.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs")
    out = DATA / "noise-methods.csv"
    write_csv(out, measure(parser.parse_args().photos))
    fill(DOCS / "noise.md", "noise-methods", table(out))


if __name__ == "__main__":
    main()
