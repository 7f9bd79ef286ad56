"""Muon: steps of equal length in every direction of a kernel, taken as a matrix.

Adam's step along a direction that gradients seldom take is small; here the averaged gradient of
a kernel, a matrix of (output channels, everything else), has its singular values brought close
to one before it is applied (Jordan et al., 2024). A norm-equivariant kernel stays one: rows of
zero sum span the rows of the step. `torch.optim.Muon` knows matrices only, and rounds to bfloat16.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

# Coefficients of the odd polynomial that pushes singular values towards one, and how often.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
# A step's root mean square is this many times the rate, as Adam's is in practice.
_STEP_RMS = 0.2
# Gradients shorter than this stand for nothing, and squares of much shorter ones vanish.
_SHORTEST = 1e-12
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
            alike = defaultdict(list)
            for kernel in group["params"]:
                if kernel.grad is not None:
                    alike[_as_matrix(kernel).shape].append(kernel)
            for kernels in alike.values():
                self._step_kernels(kernels, group["lr"], group["momentum"])

    def _step_kernels(self, kernels: list[nn.Parameter], lr: float, momentum: float) -> None:
        """Step kernels of one shape, together: small products cost more to begin than to do."""
        directions = torch.stack([self._direction(kernel, momentum) for kernel in kernels])
        length = _STEP_RMS * math.sqrt(max(directions.shape[1:]))
        for kernel, step in zip(kernels, orthogonalized(directions), strict=True):
            kernel.add_(step.view(kernel.shape), alpha=-lr * length)

    def _direction(self, kernel: nn.Parameter, momentum: float) -> Tensor:
        assert kernel.grad is not None
        state = self.state[kernel]
        if not state:
            state["mean"] = torch.zeros_like(kernel)
        mean: Tensor = state["mean"].lerp_(kernel.grad, 1 - momentum)
        # Nesterov: look one step ahead of the running mean.
        return _as_matrix(kernel.grad.lerp(mean, momentum))


def orthogonalized(matrices: Tensor) -> Tensor:
    """Return matrices with the same singular vectors and singular values of about one.

    The polynomial iteration runs on the small Gram matrix, which all its factors commute with;
    the matrix itself is multiplied once. Dimensions before the last two count matrices.

    Examples
    --------
    >>> import torch
    >>> orthogonalized(torch.diag(torch.tensor([3.0, -2.0]))).sign()
    tensor([[ 1.,  0.],
            [ 0., -1.]])
    """
    if matrices.shape[-2] > matrices.shape[-1]:
        return orthogonalized(matrices.mT).mT
    norms = torch.linalg.matrix_norm(matrices, keepdim=True)
    matrices = matrices / norms.clamp_min(_SHORTEST)
    one, three, five = _COEFFICIENTS
    gram = matrices @ matrices.mT
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    product = identity
    for _ in range(_ITERATIONS):
        factor = one * identity + three * gram + five * (gram @ gram)
        product = factor @ product
        gram = factor @ gram @ factor
    return product @ matrices


def _as_matrix(kernel: Tensor) -> Tensor:
    return kernel.flatten(1)
