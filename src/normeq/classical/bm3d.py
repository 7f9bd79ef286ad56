"""BM3D: collaborative filtering of groups of similar patches in a 3-D transform."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from normeq.classical.blocks import Aggregate, gather, match
from normeq.classical.dct import cosine_basis
from normeq.classical.planes import Array, each_plane, positive_sigma

__all__ = ["bm3d"]

_KAISER_BETA = 2.0

# Maps the spectra of noisy and guiding groups to the filtered spectra and the groups' weights.
_Shrinkage = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def bm3d(
    image: Array,
    sigma: float,
    *,
    patch: int = 8,
    step: int = 3,
    radius: int = 19,
    counts: tuple[int, int] = (16, 32),
    similarity: tuple[float, float] = (4.8, 0.64),
    threshold: float = 2.7,
) -> Array:
    """Filter groups of similar patches in 3-D, twice: ``f(λy, λσ) = λ f(y, σ)``.

    First a hard threshold, then, on the original image again, a Wiener filter guided by the
    first estimate. The group's mean is a coefficient like any other, as in the original, so
    the method is not shift-equivariant.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units.
    sigma
        Standard deviation of the noise, in the image's units.
    patch
        Side of the patches.
    step
        Spacing of the reference patches.
    radius
        Similar patches are searched up to this shift along each axis.
    counts
        Largest groups of the two stages, powers of two.
    similarity
        Largest mean squared difference within a group, in units of ``sigma²``. The values
        are the published ones (3000 and 400 for 8-bit images) at a sigma of 25.
    threshold
        Coefficients below ``threshold·sigma`` are set to zero in the first stage.

    References
    ----------
    K. Dabov, A. Foi, V. Katkovnik and K. Egiazarian, "Image denoising by sparse 3-D
    transform-domain collaborative filtering", IEEE Transactions on Image Processing, 2007.

    Examples
    --------
    >>> import torch
    >>> noisy = 100 + 10 * torch.randn(24, 24, generator=torch.manual_seed(0))
    >>> bool(bm3d(noisy, 10.0).std() < 2)
    True
    """
    sigma = positive_sigma(sigma)

    def hard_threshold(noisy: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
        kept = noisy.abs() > threshold * sigma
        return noisy * kept, 1.0 / kept.sum((1, 2)).clamp_min(1).to(noisy)

    def wiener(noisy: Tensor, guide: Tensor) -> tuple[Tensor, Tensor]:
        power = guide.square()
        gain = power / (power + sigma**2)
        smallest = torch.finfo(gain.dtype).tiny
        return noisy * gain, 1.0 / gain.square().sum((1, 2)).clamp_min(smallest)

    def both_stages(plane: Tensor) -> Tensor:
        estimate = plane
        for count, near, shrink in zip(counts, similarity, (hard_threshold, wiener), strict=True):
            farthest = near * sigma**2
            estimate = _stage(plane, estimate, shrink, patch, step, radius, count, farthest)
        return estimate

    return each_plane(image, both_stages)


def _stage(
    plane: Tensor,
    guide: Tensor,
    shrink: _Shrinkage,
    size: int,
    step: int,
    radius: int,
    count: int,
    farthest: float,
) -> Tensor:
    aggregate = Aggregate(plane, size)
    basis = cosine_basis(size, plane)
    spatial = torch.kron(basis, basis)
    window = torch.kaiser_window(size, periodic=False, beta=_KAISER_BETA).to(plane)
    window = torch.outer(window, window).flatten()
    for corners, distances in match(guide, size, step=step, radius=radius, count=count):
        similar = (distances <= farthest).sum(1).clamp_min(1)
        sizes = 2 ** similar.to(plane).log2().floor().long()
        for members in sizes.unique().tolist():
            group = corners[sizes == members, :members]
            across = _haar_basis(members, plane)
            noisy, guiding = (
                across @ gather(source, group, size) @ spatial.T for source in (plane, guide)
            )
            spectrum, weight = shrink(noisy, guiding)
            estimates = across.T @ spectrum @ spatial
            aggregate.add(group, estimates, weight[:, None, None] * window)
    return aggregate.mean()


def _haar_basis(size: int, like: Tensor) -> Tensor:
    """Return the orthonormal Haar matrix of a power of two: the constant row first."""
    basis = torch.ones(1, 1)
    while len(basis) < size:
        coarse = torch.kron(basis, torch.tensor([[1.0, 1.0]]))
        fine = torch.kron(torch.eye(len(basis)), torch.tensor([[1.0, -1.0]]))
        basis = torch.cat([coarse, fine])
    return torch.nn.functional.normalize(basis, dim=1).to(like)
