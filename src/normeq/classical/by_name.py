"""How a classical method is called by name, with or without the noise's standard deviation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from normeq.classical.plane_by_plane import Array
from normeq.errors import UsageError

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """A classical denoiser behind the call that networks share: ``method(image, sigma=None)``.

    Attributes
    ----------
    name
        The name it is known by.
    function
        The denoiser itself, ``function(image, **options)`` if it is blind and
        ``function(image, sigma, **options)`` if it is not.
    blind
        Whether it works without the noise's standard deviation; sigma must then be left out.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.classical import METHODS
    >>> METHODS["median_filter"](np.ones((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    >>> METHODS["bm3d"](np.eye(16))
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: bm3d needs the noise's standard deviation: pass sigma.
    """

    name: str
    function: Callable[..., Any]
    blind: bool

    @property
    def description(self) -> str:
        """What the method does, in a few words.

        >>> from normeq.classical import METHODS
        >>> METHODS["nlm"].description
        'Average pixels with similar surroundings'
        """
        return (self.function.__doc__ or "").partition(":")[0]

    def __call__(self, image: Array, sigma: float | None = None, **options: Any) -> Array:
        if self.blind and sigma is not None:
            raise UsageError(f"{self.name} is blind: it takes no sigma, so leave it out.")
        if not self.blind and sigma is None:
            raise UsageError(f"{self.name} needs the noise's standard deviation: pass sigma.")
        noise = () if self.blind else (sigma,)
        clean: Array = self.function(image, *noise, **options)
        return clean
