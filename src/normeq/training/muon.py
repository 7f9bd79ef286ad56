"""Muon: steps of equal length in every direction of a kernel, taken as a matrix.

Adam's step along a direction that gradients seldom take is small; here the averaged gradient of
a kernel, a matrix of (output channels, everything else), has its singular values brought close
to one before it is applied (Jordan et al., 2024). A norm-equivariant kernel stays one: rows of
zero sum span the rows of the step. `torch.optim.Muon` knows matrices only, and rounds to bfloat16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

# Coefficients of the odd polynomial that pushes singular values towards one, and how often.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
# A step's root mean square is this many times the rate, as Adam's is in practice.
_STEP_RMS = 0.2
# A kernel with fewer rows or columns has no spectrum worth flattening.
_SMALLEST_SIDE = 16


def is_matrix(parameter: nn.Parameter) -> bool:
    """Return whether a parameter is a kernel that Muon steps, not a number or a narrow layer."""
    return parameter.ndim > 1 and min(_as_matrix(parameter).shape) >= _SMALLEST_SIDE


class Muon(torch.optim.Optimizer):
    """Gradient descent along the orthogonalised running mean of gradients.

    Parameters
    ----------
    parameters
        Kernels of two or more dimensions, the first one the output channels.
    lr
        Rate; the scale of Adam's.
    momentum
        Share of the past in the running mean.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Conv2d(16, 16, 3, bias=False)
    >>> optimizer = Muon(layer.parameters(), lr=1e-3)
    >>> layer(torch.ones(1, 16, 4, 4)).square().sum().backward()
    >>> optimizer.step()
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float, momentum: float = 0.95
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step along the gradients that the parameters hold."""
        assert closure is None, "the loss is never evaluated again"
        for group in self.param_groups:
            for kernel in group["params"]:
                if kernel.grad is not None:
                    self._step_kernel(kernel, group["lr"], group["momentum"])

    def _step_kernel(self, kernel: nn.Parameter, lr: float, momentum: float) -> None:
        assert kernel.grad is not None
        state = self.state[kernel]
        if not state:
            state["mean"] = torch.zeros_like(kernel)
        mean: Tensor = state["mean"].lerp_(kernel.grad, 1 - momentum)
        # Nesterov: look one step ahead of the running mean.
        direction = _as_matrix(kernel.grad.lerp(mean, momentum))
        length = _STEP_RMS * math.sqrt(max(direction.shape))
        kernel.add_(orthogonalized(direction).view(kernel.shape), alpha=-lr * length)


def orthogonalized(matrix: Tensor) -> Tensor:
    """Return the matrix with the same singular vectors and singular values of about one.

    The polynomial iteration runs on the small Gram matrix, which all its factors commute with;
    the matrix itself is multiplied once.

    Examples
    --------
    >>> import torch
    >>> orthogonalized(torch.diag(torch.tensor([3.0, -2.0]))).sign()
    tensor([[ 1.,  0.],
            [ 0., -1.]])
    """
    if matrix.shape[0] > matrix.shape[1]:
        return orthogonalized(matrix.T).T
    matrix = matrix / matrix.norm().clamp_min(torch.finfo(matrix.dtype).tiny)
    one, three, five = _COEFFICIENTS
    gram = matrix @ matrix.T
    identity = torch.eye(len(gram), dtype=matrix.dtype, device=matrix.device)
    product = identity
    for _ in range(_ITERATIONS):
        factor = torch.addmm(three * gram + one * identity, gram, gram, alpha=five)
        product = factor @ product
        gram = factor @ gram @ factor
    return product @ matrix


def _as_matrix(kernel: Tensor) -> Tensor:
    return kernel.flatten(1)
