"""The photograph that checks, demonstrations and tables share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def sample_photograph(side: int | None = None) -> NDArray[np.float64]:
    """Return scikit-image's camera man with values in [0, 1], whole or a square of its detail.

    Examples
    --------
    >>> sample_photograph(48).shape
    (48, 48)
    """
    from skimage.data import camera

    photograph: NDArray[np.float64] = camera() / 255.0
    if side is None:
        return photograph
    return np.resize(photograph[100 : 100 + side, 200 : 200 + side], (side, side))
