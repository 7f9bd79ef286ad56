"""What can be said about a denoised image without ground truth: in words, as a table, as data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from normeq._support.tables import text_table
from normeq.adaptation.error_interval import ErrorInterval, ErrorSums
from normeq.adaptation.residual_check import ResidualStatistics
from normeq.adaptation.residual_verdicts import Finding, findings


@dataclass(frozen=True)
class QualityReport:
    """The estimated error of a denoised image, and whether what was removed was noise.

    Attributes
    ----------
    rmse, low, high
        Root mean squared error in the units of the image, and the interval that contains the true
        one in 90 % of all cases.
    psnr, psnr_low, psnr_high
        The same in decibels, relative to the range of the result.
    sigma
        Standard deviation of the noise before, in the units of the image.
    sigma_error
        Its relative standard error; 0 if the noise was stated, not estimated.
    noise_left
        Standard deviation of the noise that is left, without bias.
    is_known
        Whether the interval spans no more than a factor of 2 in mean squared error.
    findings
        What was compared, and the verdicts.
    pixels
        How many pixels were looked at.
    """

    rmse: float
    low: float
    high: float
    psnr: float
    psnr_low: float
    psnr_high: float
    sigma: float
    sigma_error: float
    noise_left: float
    is_known: bool
    findings: tuple[Finding, ...]
    pixels: int

    @classmethod
    def of(
        cls,
        interval: ErrorInterval,
        sums: ErrorSums,
        residual: ResidualStatistics,
        *,
        value_range: float,
        level_error: float,
        told_white: bool,
        is_stated: bool,
    ) -> Self:
        """Bring together what was measured.

        Parameters
        ----------
        interval, sums
            The error, and the sums over pixels behind it, in physical units.
        residual
            What was removed.
        value_range
            From the darkest to the brightest pixel of the result.
        level_error
            Relative standard error of the variance of the noise.
        told_white
            Whether the denoiser took the noise for white.
        is_stated
            Whether the caller stated the noise.
        """
        rmse, low, high = (math.sqrt(mse) for mse in (interval.mse, interval.low, interval.high))
        return cls(
            rmse,
            low,
            high,
            _psnr(rmse, value_range),
            _psnr(high, value_range),
            _psnr(low, value_range),
            math.sqrt(sums.variance / sums.pixels),
            level_error / 2,
            math.sqrt(sums.remaining / sums.pixels),
            interval.is_known,
            findings(residual, told_white, is_stated),
            sums.pixels,
        )

    @property
    def warnings(self) -> list[str]:
        """The verdicts that ask for attention."""
        return [finding.verdict for finding in self.findings if not finding.is_fine]

    def lines(self) -> list[str]:
        """Say what was found: the error, and a line for each warning."""
        error = (
            f"quality: estimated RMSE {self.rmse:.3g} ({self.low:.3g} to {self.high:.3g}), PSNR "
            f"{self.psnr:.1f} dB ({self.psnr_low:.1f} to {self.psnr_high:.1f})"
        )
        if not self.is_known:
            error = (
                "quality: cannot be told, because the noise level is not known well enough: RMSE "
                f"between {self.low:.3g} and {self.high:.3g}; state it with --sigma, or measure it"
            )
        fine = [] if self.warnings else ["what was removed looks like the noise of the image"]
        return [error, *fine, *(f"warning: {verdict}" for verdict in self.warnings)]

    def table(self) -> str:
        """Lay out what was compared for a terminal."""
        return text_table([finding.row() for finding in self.findings])

    def __str__(self) -> str:
        return "\n".join([*self.lines(), self.table()])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and texts, for JSON; decibels of a perfect result are None."""
        data = asdict(self) | {"warnings": self.warnings}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in data.items()
        }


def _psnr(rmse: float, value_range: float) -> float:
    if rmse == 0:
        return math.inf
    return 20 * math.log10(value_range / rmse) if value_range > 0 else -math.inf
