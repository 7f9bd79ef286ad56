"""Verdicts on what was removed from an image, in plain words, each with the way out."""

from __future__ import annotations

from dataclasses import dataclass

from normeq.adaptation.residual_check import ResidualStatistics

# Limits of what is normal, chosen on photographs and synthetic scenes with white noise of 5 to 50
# grey levels: few are beyond them. See benchmarks/quality.py.
_AUTOCORRELATION = 0.5
_AMOUNT = (0.5, 2.0)
_BRIGHTNESS = (0.5, 2.0)
_DETAIL = 0.5
_FAR = 5e-4


@dataclass(frozen=True)
class Finding:
    """One comparison of what was removed with the noise.

    Attributes
    ----------
    check
        What was compared.
    found
        An effect size, without units.
    expected
        What noise as assumed would give.
    limits
        Between which values all is well.
    is_fine
        Whether it is.
    verdict
        What that means, and what to do.
    """

    check: str
    found: float
    expected: float
    limits: tuple[float, float]
    is_fine: bool
    verdict: str

    def row(self) -> dict[str, str]:
        """Return the row of a table."""
        low, high = self.limits
        return {
            "what was removed": self.check,
            "found": f"{self.found:.3g}",
            "noise": f"{self.expected:.3g}",
            "normal": f"{low:.3g} to {high:.3g}",
            "": "fine" if self.is_fine else "warning",
        }


def findings(
    residual: ResidualStatistics, told_white: bool, is_stated: bool
) -> tuple[Finding, ...]:
    """Judge what was removed from an image.

    Parameters
    ----------
    residual
        What was measured.
    told_white
        Whether the denoiser took the noise for white.
    is_stated
        Whether the caller stated the noise.
    """
    return (
        _autocorrelation(residual, told_white),
        _judged(
            "variance, relative to expected",
            residual.amount,
            1.0,
            _AMOUNT,
            "less was removed than noise of this level: the noise is weaker than "
            f"{_assumed(is_stated)}, or correlated; {_other_level(is_stated)}",
            "more was removed than noise of this level: the noise is stronger than "
            f"{_assumed(is_stated)}, or structure was removed; {_other_level(is_stated)}",
        ),
        _judged(
            "variance, bright relative to dark",
            residual.brightness,
            1.0,
            _BRIGHTNESS,
            "too little was removed where the image is bright: use --noise auto, or, for images "
            "behind an unknown curve, --noise learned",
            "too much was removed where the image is bright: the noise grows with the signal; use "
            "--noise poisson-gaussian",
        ),
        _judged(
            "detail of the result in it",
            residual.detail,
            0.0,
            (-_DETAIL, _DETAIL),
            "the result is sharper than the image: use another --model",
            "structure of the image was removed with the noise: lower --strength or --sigma",
        ),
        _judged(
            "pixels beyond 4.5 sigma",
            residual.far,
            0.0,
            (0.0, _FAR),
            "",
            "single pixels are far from their surroundings: remove hot pixels or outliers first "
            "(a median filter), or the noise is not Gaussian",
        ),
    )


def _autocorrelation(residual: ResidualStatistics, told_white: bool) -> Finding:
    """Judge the autocorrelation between neighbours, along the axis where it differs more."""
    pairs = [
        (residual.down[1], residual.noise_down[1]),
        (residual.across[1], residual.noise_across[1]),
    ]
    found, expected = max(pairs, key=lambda pair: abs(pair[0] - pair[1]))
    limits = (expected - _AUTOCORRELATION, expected + _AUTOCORRELATION)
    way_out = (
        "it was denoised as white; use --noise auto, without --model, which tells the network"
        if told_white
        else "use --model default, and --noise auto"
    )
    return _judged(
        "autocorrelation of neighbours",
        found,
        expected,
        limits,
        f"smooth noise was left in the result: the noise is correlated, and {way_out}",
        "what was removed is smoother than the noise: structure was removed, or the noise is "
        "correlated; use --noise auto, or lower --strength",
    )


def _judged(
    check: str,
    found: float,
    expected: float,
    limits: tuple[float, float],
    too_low: str,
    too_high: str,
) -> Finding:
    low, high = limits
    is_fine = low <= found <= high
    verdict = "fine" if is_fine else too_low if found < low else too_high
    return Finding(check, found, expected, limits, is_fine, verdict)


def _assumed(is_stated: bool) -> str:
    return "stated" if is_stated else "estimated"


def _other_level(is_stated: bool) -> str:
    return "leave --sigma out to have it estimated" if is_stated else "state it with --sigma"
