"""Non-local means."""

from __future__ import annotations

import torch
from torch import Tensor

from normeq.classical.plane_by_plane import Array, each_plane, positive_sigma

__all__ = ["nlm"]


def nlm(
    image: Array,
    sigma: float,
    *,
    patch: int = 7,
    radius: int = 10,
    strength: float = 0.6,
) -> Array:
    """Average pixels with similar surroundings: ``f(λy + μ, λσ) = λ f(y, σ) + μ``.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units.
    sigma
        Standard deviation of the noise, in the image's units.
    patch
        Side of the patches that are compared.
    radius
        Similar pixels are searched up to this shift along each axis.
    strength
        The smoothing parameter h in units of sigma.

    References
    ----------
    A. Buades, B. Coll and J.-M. Morel, "A non-local algorithm for image denoising", CVPR,
    2005; the implementation is scikit-image's.

    Examples
    --------
    >>> import torch
    >>> noisy = 100 + 10 * torch.randn(24, 24, generator=torch.manual_seed(0))
    >>> bool(nlm(noisy, 10.0).std() < 5)
    True
    """
    from skimage.restoration import denoise_nl_means

    sigma = positive_sigma(sigma)

    def weighted_means(plane: Tensor) -> Tensor:
        return torch.from_numpy(
            denoise_nl_means(
                plane.numpy(),
                patch_size=patch,
                patch_distance=radius,
                h=strength * sigma,
                sigma=sigma,
                preserve_range=True,
            )
        )

    return each_plane(image, weighted_means)
