"""Recipes: everything that decides what a training run computes, as validated tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from normeq.models import TakesSigma, Variant
from normeq.models.noise_maps import takes_sigma_of
from normeq.noise import KINDS

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class _Section(BaseModel):
    """A table of the recipe: no unknown fields, no changes once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NetworkSettings(_Section):
    """The network to train: the arguments of `normeq.create`, and where its weights start."""

    architecture: str
    variant: Variant
    takes_sigma: TakesSigma = "never"
    takes_correlation: bool = False
    channels: Literal[1, 3] = 1
    separate_channels: bool = False
    size: dict[str, bool | int | tuple[int, ...]] = {}
    #: A shipped name or a weights file to start from instead of random weights.
    init: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _blind(cls, table: Any) -> Any:
        """Accept ``blind``, as `normeq.create` does."""
        if not isinstance(table, dict) or not isinstance(table.get("blind"), bool):
            return table
        rest = {key: value for key, value in table.items() if key != "blind"}
        return {"takes_sigma": takes_sigma_of(table["blind"]), **rest}


class Mixture(_Section):
    """What noise there is beside white noise of one level, and what the network is told of it.

    All numbers but the last two of the first group are shares of the samples.
    """

    #: Correlated noise: smoothed by kernels of these widths in pixels, and partly white.
    colored: Fraction = 0.0
    widths: tuple[Positive, Positive] = (0.3, 1.6)
    #: Of correlated noise, the share with a weak part that reaches further. It is not told.
    far: Fraction = 0.0
    #: Noise processed as cameras do: interpolated from a mosaic or smoothed, compressed to JPEG.
    camera: Fraction = 0.0
    #: Photon and read noise behind the transform that `normeq.denoise` puts around a network.
    stabilised: Fraction = 0.0
    #: A level that varies smoothly over the image, or grows with the signal as photon noise.
    smooth: Fraction = 0.0
    signal: Fraction = 0.0
    #: In colour images: channels whose noise is correlated, or has levels of their own.
    mixed_channels: Fraction = 0.0
    channel_levels: Fraction = 0.0
    #: The network is not told the level.
    not_told: Fraction = 0.0
    #: It is told a part of the level, and should remove that part alone.
    understated: Fraction = 0.0
    #: It is told more than the level, and should do what it does to noise that is as strong.
    overstated: Fraction = 0.0
    #: It is told a level that is wrong by up to a factor, and should not mind.
    inexact: Fraction = 0.0
    inexact_factor: Annotated[float, Field(ge=1)] = 1.25

    @model_validator(mode="after")
    def _consistent(self) -> Mixture:
        groups = (
            ("colored", "camera", "stabilised"),
            ("smooth", "signal"),
            ("not_told", "understated", "overstated", "inexact"),
        )
        for names in groups:
            if sum(getattr(self, name) for name in names) > 1 + 1e-9:
                raise ValueError(f"the shares {', '.join(names)} add up to more than 1")
        return self


class Data(_Section):
    """The samples: patches of clean images, and the noise added to them on the fly."""

    patch: Count
    #: Share of the photographs' crops that are taken from reduced images.
    reduced: Fraction = 0.0
    #: Crops are drawn with a probability that grows as this power of their detail.
    detail: Annotated[float, Field(ge=0)] = 0.0
    #: Share of the photographs' patches whose finest detail is amplified.
    sharpened: Fraction = 0.0
    #: Share of the patches that are changed to look as if a microscope had taken them: those are
    #: neither reduced nor sharpened.
    microscope: Fraction = 0.0
    #: Share of the patches that stripes or straight edges are drawn over.
    man_made: Fraction = 0.0
    #: Distribution of white noise, one of `normeq.noise.KINDS`.
    noise: str = "gaussian"
    #: Noise level, or lowest and highest of a uniform draw, on the scale where white is 255.
    sigma: Positive | tuple[Positive, Positive]
    #: White noise of one level, known to a network that takes sigma, without it.
    mixture: Mixture | None = None
    #: For the card of the weights: which images the run is meant for, and their licence.
    source: str = ""

    @field_validator("noise")
    @classmethod
    def _known(cls, noise: str) -> str:
        if noise not in KINDS:
            raise ValueError(f"choose one of {', '.join(KINDS)}")
        return noise

    @field_validator("sigma")
    @classmethod
    def _ordered(cls, sigma: float | tuple[float, float]) -> float | tuple[float, float]:
        if isinstance(sigma, tuple) and sigma[0] > sigma[1]:
            raise ValueError(f"the lowest level {sigma[0]} is above the highest, {sigma[1]}")
        return sigma

    @property
    def sigma_range(self) -> tuple[float, float]:
        """Lowest and highest noise level, equal when it is fixed."""
        return self.sigma if isinstance(self.sigma, tuple) else (self.sigma, self.sigma)


class Optimization(_Section):
    """The optimiser, its learning rate from first step to last, and what surrounds it."""

    steps: Count
    batch: Count
    loss: Literal["l1", "mse"] = "mse"
    #: Divide each sample's loss by this power of its noise level.
    balance: Annotated[float, Field(ge=0, le=1)] = 0.0
    #: "muon" steps kernels by Muon, and by Adam what is left.
    optimizer: Literal["adam", "muon"] = "adam"
    learning_rate: Positive
    #: Adam's shares of the past in its running means of gradients and of their squares.
    betas: tuple[Share, Share] = (0.9, 0.999)
    schedule: Literal["constant", "halve", "cosine"] = "constant"
    #: With "halve": steps between two halvings.
    halve_every: Count = 100_000
    #: Steps of linear rise at the start.
    warmup: CountOrNone = 0
    #: Steps of a cosine fall to zero at the end of a "constant" or "halve" schedule.
    decay_steps: CountOrNone = 0
    #: Largest norm of the gradient; longer ones are shortened to it.
    clip: Positive | None = None
    #: Decay of the moving average of the weights that is validated and kept; none without it.
    ema: Annotated[float, Field(gt=0, lt=1)] | None = None
    dtype: Literal["float32", "float64"] = "float32"
    mixed_precision: Literal["no", "bf16"] = "no"
    channels_last: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> Optimization:
        if self.warmup + self.decay_steps > self.steps:
            raise ValueError(
                f"warmup {self.warmup} and decay_steps {self.decay_steps} "
                f"do not fit into {self.steps} steps"
            )
        return self


class Validation(_Section):
    """The fixed noisy set on which the best weights are chosen."""

    every: Count = 1000
    #: Levels of white noise. A network that takes sigma optionally is told it, and not told it.
    sigma: tuple[Positive, ...] = (15.0, 25.0, 50.0)
    #: Levels of correlated noise.
    correlated: tuple[Positive, ...] = ()
    #: Side of the central square that is used of each image; the whole image without it.
    crop: Count | None = None


class Recipe(_Section):
    """A training run: the same recipe, data and number of steps give the same weights."""

    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    network: NetworkSettings
    data: Data
    optimization: Optimization
    validation: Validation = Validation()
    #: Steps between two checkpoints, and between two lines of the log.
    checkpoint_every: Count = 500
    log_every: Count = 50
