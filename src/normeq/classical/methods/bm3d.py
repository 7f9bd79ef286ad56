"""BM3D: collaborative filtering of groups of similar patches in a 3-D transform."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from normeq.classical.patch_matching import Aggregate, Matches, gather, match
from normeq.classical.plane_by_plane import Array, each_plane, positive_sigma
from normeq.classical.transforms import cosine_basis, haar_basis, spline_wavelet_basis
from normeq.errors import UsageError

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

    First a hard threshold of spline wavelets, then, on the original image again, a Wiener filter
    of cosines guided by the first estimate; across patches, Haar wavelets. The mean of a group is
    a coefficient like any other, as in the original, so the method is not shift-equivariant.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units.
    sigma
        Standard deviation of the noise, in the image's units.
    patch
        Side of the patches, a power of two.
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
    if patch < 1 or patch & (patch - 1):
        raise UsageError(f"patch is {patch}; wavelets need a power of two, such as 8.")

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
        for count, near, basis, shrink in zip(
            counts,
            similarity,
            (spline_wavelet_basis(patch, plane), cosine_basis(patch, plane)),
            (hard_threshold, wiener),
            strict=True,
        ):
            groups = match(estimate, patch, step=step, radius=radius, count=count)
            estimate = _stage(plane, estimate, groups, near * sigma**2, basis, shrink)
        return estimate

    return each_plane(image, both_stages)


def _stage(
    plane: Tensor,
    guide: Tensor,
    groups: Iterable[Matches],
    farthest: float,
    basis: Tensor,
    shrink: _Shrinkage,
) -> Tensor:
    """Filter the groups in 3-D; patches farther than `farthest` from the first are left out."""
    size = len(basis)
    aggregate = Aggregate(plane, size)
    forward = torch.kron(basis, basis)
    backward = torch.linalg.inv(forward)
    window = torch.kaiser_window(size, periodic=False, beta=_KAISER_BETA).to(plane)
    window = torch.outer(window, window).flatten()
    for corners, distances in groups:
        similar = (distances <= farthest).sum(1).clamp_min(1)
        sizes = 2 ** similar.to(plane).log2().floor().long()
        for members in sizes.unique().tolist():
            group = corners[sizes == members, :members]
            across = haar_basis(members, plane)
            noisy, guiding = (
                across @ gather(source, group, size) @ forward.T for source in (plane, guide)
            )
            spectrum, weight = shrink(noisy, guiding)
            estimates = across.T @ spectrum @ backward.T
            aggregate.add(group, estimates, weight[:, None, None] * window)
    return aggregate.mean()
