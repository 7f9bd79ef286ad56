"""What is known of an image's noise: its variance as a function of the signal, its correlation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.errors import UsageError
from normeq.noise.correlation import WHITE, Correlation


@dataclass(frozen=True, kw_only=True)
class NoiseModel:
    """Noise of variance ``gain · y + base`` where the signal is ``y``, and its correlation.

    In other units, ``λ·y + μ``, the gain is ``λ · gain``, the base ``λ² · base - λ · μ · gain``,
    and the correlation the same (see `rescaled`). Gain 0 is noise of one level everywhere. The
    base may be negative: a camera's offset is part of it.

    Examples
    --------
    >>> from normeq.noise import NoiseModel
    >>> model = NoiseModel(gain=2.0, base=25.0, darkest=0.0, mean=100.0, brightest=1000.0)
    >>> float(model.sigma(100.0))
    15.0
    >>> print(model.describe())
    signal-dependent, gain 2; sigma 5 at level 0 (darkest), 45 at 1000 (brightest); white

    Parameters
    ----------
    gain
        Growth of the variance with the signal: grey levels per photo-electron for a camera.
    base
        Variance where the signal is 0.
    darkest, mean, brightest
        Levels of the image that the model was estimated on; below the darkest, the variance is
        that of the darkest.
    correlation
        How the noise of neighbouring pixels is related; white by default.
    covariance
        Uncertainty of gain and base: variance of the gain, covariance, variance of the base.
    """

    gain: float
    base: float
    darkest: float
    mean: float
    brightest: float
    correlation: Correlation = WHITE
    covariance: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        numbers = (self.gain, self.base, self.darkest, self.mean, self.brightest, *self.covariance)
        if not all(math.isfinite(number) for number in numbers):
            raise UsageError(f"a noise model is made of finite numbers, not {numbers}.")
        if self.gain < 0:
            raise UsageError(f"gain is {self.gain:g}; it must not be negative.")
        if not self.darkest <= self.mean <= self.brightest:
            raise UsageError(
                f"levels are {self.darkest:g}, {self.mean:g} and {self.brightest:g}; "
                "they must increase."
            )
        rounding = 1e-9 * (abs(self.gain * self.darkest) + abs(self.base))
        if self.gain * self.darkest + self.base < -rounding:
            raise UsageError(
                f"at its darkest level, {self.darkest:g}, the variance would be "
                f"{self.gain * self.darkest + self.base:g}; it must not be negative."
            )

    @classmethod
    def uniform(cls, sigma: float, *, level: float = 0.0, correlation: Correlation = WHITE) -> Self:
        """Return noise of standard deviation `sigma` everywhere."""
        if sigma < 0:
            raise UsageError(f"sigma is {sigma:g}; it must not be negative.")
        return cls(
            gain=0.0,
            base=sigma**2,
            darkest=level,
            mean=level,
            brightest=level,
            correlation=correlation,
        )

    @classmethod
    def from_camera(
        cls,
        gain: float,
        read_noise: float,
        offset: float = 0.0,
        *,
        brightest: float | None = None,
        correlation: Correlation = WHITE,
    ) -> Self:
        """Return the noise of a calibrated camera: ``base = read_noise² - gain · offset``.

        Parameters
        ----------
        gain
            Grey levels per photo-electron.
        read_noise
            Standard deviation in the dark, in grey levels.
        offset
            Mean grey level in the dark.
        brightest
            The highest level of interest; only `describe` uses it.
        correlation
            How the noise of neighbouring pixels is related; white by default.
        """
        if read_noise < 0:
            raise UsageError(f"read_noise is {read_noise:g}; it must not be negative.")
        top = offset if brightest is None else max(brightest, offset)
        return cls(
            gain=gain,
            base=read_noise**2 - gain * offset,
            darkest=offset,
            mean=offset,
            brightest=top,
            correlation=correlation,
        )

    @property
    def is_uniform(self) -> bool:
        """Whether the noise is the same at every level."""
        return self.gain == 0

    @property
    def gain_error(self) -> float:
        """Standard error of the gain."""
        return math.sqrt(max(self.covariance[0], 0.0))

    @property
    def base_error(self) -> float:
        """Standard error of the base."""
        return math.sqrt(max(self.covariance[2], 0.0))

    @property
    def mean_sigma(self) -> float:
        """The root of the mean variance over the image."""
        return float(self.sigma(self.mean))

    def variance(self, signal: ArrayLike) -> NDArray[np.float64]:
        """Return ``gain · y + base``, for ``y`` at least the darkest level."""
        levels = np.maximum(np.asarray(signal, dtype=np.float64), self.darkest)
        return np.maximum(self.gain * levels + self.base, 0.0)

    def sigma(self, signal: ArrayLike) -> NDArray[np.float64]:
        """Return the standard deviation of the noise where the signal is `signal`."""
        return np.sqrt(self.variance(signal))

    def sigma_error(self, signal: float) -> float:
        """Return the standard error of `sigma` at one level."""
        of_gain, joint, of_base = self.covariance
        variance = of_gain * signal**2 + 2 * joint * signal + of_base
        sigma = float(self.sigma(signal))
        return math.sqrt(max(variance, 0.0)) / (2 * sigma) if sigma > 0 else 0.0

    def rescaled(self, scale: float, offset: float = 0.0) -> NoiseModel:
        """Return the noise of ``scale · y + offset``, for a positive scale.

        Examples
        --------
        >>> from normeq.noise import NoiseModel
        >>> NoiseModel.from_camera(2.0, 3.0, 100.0).rescaled(10.0, 5.0).base
        -19200.0
        """
        if not scale > 0:
            raise UsageError(f"scale is {scale:g}; it must be positive.")
        of_gain, joint, of_base = self.covariance
        return NoiseModel(
            gain=scale * self.gain,
            base=scale**2 * self.base - scale * offset * self.gain,
            darkest=scale * self.darkest + offset,
            mean=scale * self.mean + offset,
            brightest=scale * self.brightest + offset,
            correlation=self.correlation,
            covariance=(
                scale**2 * of_gain,
                scale**2 * (scale * joint - offset * of_gain),
                scale**2 * (scale**2 * of_base - 2 * scale * offset * joint + offset**2 * of_gain),
            ),
        )

    def describe(self) -> str:
        """Say in one line what the noise is."""
        if self.is_uniform:
            level = f"uniform, sigma {self.mean_sigma:.3g}"
        else:
            dark, bright = (float(self.sigma(level)) for level in (self.darkest, self.brightest))
            level = (
                f"signal-dependent, gain {self.gain:.3g}; sigma {dark:.2g} at level "
                f"{self.darkest:.4g} (darkest), {bright:.2g} at {self.brightest:.4g} (brightest)"
            )
        return f"{level}; {self.correlation.describe()}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, for JSON."""
        return {
            "gain": self.gain,
            "base": self.base,
            "darkest": self.darkest,
            "mean": self.mean,
            "brightest": self.brightest,
            "correlation": self.correlation.to_dict(),
            "covariance": list(self.covariance),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the model that `to_dict` described."""
        try:
            of_gain, joint, of_base = (float(number) for number in data["covariance"])
            return cls(
                gain=float(data["gain"]),
                base=float(data["base"]),
                darkest=float(data["darkest"]),
                mean=float(data["mean"]),
                brightest=float(data["brightest"]),
                correlation=Correlation.from_dict(data["correlation"]),
                covariance=(of_gain, joint, of_base),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"this is not a noise model: {error}.") from error
