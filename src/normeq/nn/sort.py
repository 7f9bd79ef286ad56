"""Channel-wise sort pooling: the nonlinearity that commutes with gain and offset."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from normeq.errors import UsageError


class SortPool(nn.Module):
    """Sort groups of adjacent channels: ``sort(λ·x + μ) = λ·sort(x) + μ`` for ``λ > 0``.

    The equivariant counterpart of ReLU: nonlinear, piecewise linear, norm-preserving. Values of
    each group come out in ascending order; channels left over at the end pass through.

    Parameters
    ----------
    group
        How many adjacent channels are sorted together.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[3.0, 1.0, 2.0, 5.0, 4.0]])
    >>> SortPool()(x)
    tensor([[1., 3., 2., 5., 4.]])
    >>> SortPool(group=5)(x)
    tensor([[1., 2., 3., 4., 5.]])
    """

    def __init__(self, group: int = 2) -> None:
        super().__init__()
        if group < 2:
            raise UsageError(f"group={group} sorts nothing: use at least 2 channels.")
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        """Sort channels (axis 1) of a tensor of shape ``(N, C, ...)``."""
        rest = x.shape[1] % self.group
        whole = x.shape[1] - rest
        paired = x.narrow(1, 0, whole)
        if self.group == 2:
            first, second = paired[:, ::2], paired[:, 1::2]
            ordered = torch.stack((torch.minimum(first, second), torch.maximum(first, second)), 2)
        else:
            ordered = paired.unflatten(1, (-1, self.group)).sort(2).values
        ordered = ordered.flatten(1, 2)
        return torch.cat((ordered, x.narrow(1, whole, rest)), 1) if rest else ordered

    def extra_repr(self) -> str:
        """Describe the layer in a printed network."""
        return f"group={self.group}"
