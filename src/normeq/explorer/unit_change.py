"""Whether the twin follows a change of units, measured on a part of the image."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from normeq.denoising.introspection import channels_of
from normeq.equivariance import TOLERANCES, image_spread
from normeq.explorer.exploration import Exploration, Setting

# Side of the part that is measured: large enough for structure, small enough for a slider.
_SIDE = 256

#: The lowest and the highest value of some pixels.
Limits = tuple[float, float]


@dataclass(frozen=True)
class UnitChange:
    """How far ``f(λ·y + μ)`` is from ``λ·f(y) + μ``.

    Attributes
    ----------
    worst, typical
        The largest error, and the root of the mean squared one, in spreads of ``λ·y + μ``.
    follows
        Whether the largest is no more than rounding.
    network_alone
        The largest error of the network itself, called on the numbers as they are, in single
        precision; None if the denoiser is not a network.
    input, output
        Limits of the image and of its twin in the image's own units.
    changed_input, changed_output
        Limits of both after the change of units.
    expected_output
        What the last would be if the twin followed.
    """

    worst: float
    typical: float
    follows: bool
    network_alone: float | None
    input: Limits
    output: Limits
    changed_input: Limits
    changed_output: Limits
    expected_output: Limits

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return asdict(self)


def measure_unit_change(
    exploration: Exploration, setting: Setting, frame: int, center: tuple[int, int]
) -> UnitChange:
    """Denoise a part of the image in its own units and in others, and compare.

    All that `normeq.denoise` does is measured, from the estimate of the noise on. A model that
    is not equivariant gets the same value range both times: nobody tells it of the change.

    Parameters
    ----------
    exploration, setting
        The image, and how its twin is computed.
    frame, center
        The middle of the part.
    """
    image = exploration.image
    rows, columns = (
        slice(max(0, place - _SIDE // 2), min(length, place + _SIDE // 2))
        for place, length in zip(center, (image.height, image.width), strict=True)
    )
    gain, offset = setting.gain, setting.offset
    pixels = image.read_region(frame, rows, columns)[..., : exploration.channels]
    own = exploration.denoised_region(setting.in_own_units, frame, rows, columns)
    changed = exploration.denoised_region(setting, frame, rows, columns)
    known = np.isfinite(pixels)
    spread = image_spread(torch.from_numpy(pixels[known])) if known.any() else 1.0
    expected = gain * own + offset
    errors = (changed - expected)[known] / (gain * spread)
    worst = float(np.abs(errors).max(initial=0.0))
    return UnitChange(
        worst=worst,
        typical=float(np.sqrt(np.mean(np.square(errors)))) if errors.size else 0.0,
        follows=worst <= TOLERANCES[torch.float32],
        network_alone=_network_error(exploration, setting, frame, pixels, spread),
        input=_limits(pixels),
        output=_limits(own),
        changed_input=_limits(gain * pixels + offset),
        changed_output=_limits(changed),
        expected_output=_limits(expected),
    )


def _network_error(
    exploration: Exploration,
    setting: Setting,
    frame: int,
    pixels: NDArray[np.float64],
    spread: float,
) -> float | None:
    """Return the largest error of the network itself: nothing is standardised around it."""
    net = exploration.network(setting)
    if net is None or not np.isfinite(pixels).all():
        return None
    low, high = exploration.models[setting.model].value_range or (0.0, 1.0)
    seen = pixels if channels_of(net) > 1 else pixels[..., :1]
    level = exploration.told_level(setting.in_own_units, frame, 0)

    def run(values: NDArray[np.float64], gain: float) -> NDArray[np.float64]:
        given = torch.from_numpy(np.moveaxis((values - low) / (high - low), -1, 0)[None]).float()
        told = [] if level is None else [gain * level / (high - low)]
        with torch.inference_mode():
            output = net(given, *told)[0].double().numpy()
        changed: NDArray[np.float64] = (high - low) * np.moveaxis(output, 0, -1) + low
        return changed

    expected = setting.gain * run(seen, 1.0) + setting.offset
    found = run(setting.gain * seen + setting.offset, setting.gain)
    return float(np.abs(found - expected).max()) / (setting.gain * spread)


def _limits(values: NDArray[np.float64]) -> Limits:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
