"""NLRN: a recurrent network whose state is averaged over similar neighbours at every step."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import unfold

__all__ = ["NLRN"]


class NLRN(nn.Module):
    """Refine a state by the same non-local residual block, again and again.

    Parameters
    ----------
    channels
        Channels of the image.
    width
        Channels of the state; 128 in the original.
    steps
        Recurrences; 12 in the original.
    neighbourhood
        Side of the window, an odd number of pixels, in which correlations are measured; 45 in
        the original.

    References
    ----------
    D. Liu, B. Wen, Y. Fan, C. C. Loy and T. S. Huang, "Non-local recurrent network for image
    restoration", NeurIPS, 2018.

    Examples
    --------
    >>> import torch
    >>> NLRN()(torch.zeros(1, 1, 8, 9)).shape
    torch.Size([1, 1, 8, 9])
    """

    def __init__(
        self, channels: int = 1, width: int = 16, steps: int = 3, neighbourhood: int = 5
    ) -> None:
        super().__init__()
        self.steps = steps
        self.features = nn.Sequential(
            nn.BatchNorm2d(channels), nn.Conv2d(channels, width, 3, padding=1)
        )
        self.before = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU())
        self.nonlocal_average = _NonLocalAverage(width, neighbourhood)
        self.after = nn.Sequential(
            nn.BatchNorm2d(width),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )
        self.output = nn.Sequential(
            nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, channels, 3, padding=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Denoise images of shape ``(N, C, H, W)``."""
        first = state = self.features(x)
        correlation = None
        for _ in range(self.steps):
            state, correlation = self.nonlocal_average(self.before(state), correlation)
            state = self.after(state) + first
        residual: Tensor = self.output(state)
        return x + residual


class _NonLocalAverage(nn.Module):
    """Average neighbours by the softmax of their correlation, which is passed on and added up."""

    def __init__(self, width: int, neighbourhood: int) -> None:
        super().__init__()
        self.neighbourhood = neighbourhood
        self.query = nn.Conv2d(width, width // 2, 1)
        self.key = nn.Conv2d(width, width // 2, 1)
        self.value = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor, previous: Tensor | None) -> tuple[Tensor, Tensor]:
        query = self.query(x).flatten(2).unsqueeze(2)
        correlation = (query * self._neighbours(self.key(x))).sum(1, keepdim=True)
        if previous is not None:
            correlation = correlation + previous
        average = (correlation.softmax(2) * self._neighbours(self.value(x))).sum(2)
        return average.unflatten(2, (x.shape[2], x.shape[3])), correlation

    def _neighbours(self, x: Tensor) -> Tensor:
        """Return the neighbours of every pixel, of shape ``(N, C, neighbours, pixels)``."""
        size = self.neighbourhood
        columns = unfold(x, size, padding=size // 2)
        return columns.reshape(x.shape[0], x.shape[1], size**2, -1)
