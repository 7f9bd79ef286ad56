"""DnCNN: a plain stack of convolutions with batch normalisation that predicts the noise."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["DnCNN"]


class DnCNN(nn.Module):
    """Predict the noise and subtract it.

    Parameters
    ----------
    channels
        Channels of the image.
    width
        Channels of the hidden layers; 64 in the original.
    depth
        Number of convolutions; 17 in the original.

    References
    ----------
    K. Zhang, W. Zuo, Y. Chen, D. Meng and L. Zhang, "Beyond a Gaussian denoiser: residual
    learning of deep CNN for image denoising", IEEE Transactions on Image Processing, 2017.

    Examples
    --------
    >>> import torch
    >>> DnCNN()(torch.zeros(1, 1, 8, 9)).shape
    torch.Size([1, 1, 8, 9])
    """

    def __init__(self, channels: int = 1, width: int = 16, depth: int = 6) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 2):
            layers += [
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            ]
        self.noise = nn.Sequential(*layers, nn.Conv2d(width, channels, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        """Denoise images of shape ``(N, C, H, W)``."""
        noise: Tensor = self.noise(x)
        return x - noise
