"""Any layer made homogeneous or equivariant, by the spread of the features that enter it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map


class Enclosed(nn.Module):
    """Let any layer scale with its input: ``e(λ·x) = λ·e(x)``, ``e(x) = s·inner(x/s)``.

    `s` is the root mean square of the features of each sample, relative to a usual one. So norms
    with an epsilon, gates, squashing activations and attention see ratios, which no gain changes,
    and what comes out of them scales again. Where the features have their usual size, the layer
    does what it does by itself.

    A batch norm inside learns statistics of ratios: in training those of the batch, to which every
    sample contributes relative to its own size, so that the law holds with a gain for each sample.

    With `offset`, the mean of the sample is taken away before and added after:
    ``e(λ·x + μ) = λ·e(x) + μ``.

    Parameters
    ----------
    inner
        Any layer. Tensors among its arguments change with the first one; its outputs scale.
    fixed
        Positions and names of arguments that do not: masks, coordinates.
    usual
        The size of features at which ``s = 1``.
    offset
        Whether features follow an offset, too.
    batch_axis
        The axis of samples.

    Examples
    --------
    >>> import torch
    >>> gate = Enclosed(torch.nn.Sigmoid()).double()
    >>> x = torch.rand(1, 4, 8, 8, dtype=torch.float64) - 0.5
    >>> torch.allclose(gate(7 * x), 7 * gate(x))
    True
    """

    usual: Tensor

    def __init__(
        self,
        inner: nn.Module,
        usual: float = 1.0,
        *,
        fixed: Sequence[int | str] = (),
        offset: bool = False,
        batch_axis: int = 0,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.fixed = tuple(fixed)
        self.offset = offset
        self.batch_axis = batch_axis
        self.register_buffer("usual", torch.tensor(float(usual)))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer on ratios."""
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        changing = {name: value for name, value in given.items() if name not in self.fixed}
        first = next(leaf for leaf in tree_leaves(changing) if _is_feature(leaf))
        center, power = self._statistics(first)
        # Infinity stands in for zero: its inverse is 0, and unlike 1 it sets no scale.
        empty = power == 0
        spread = torch.where(empty, math.inf, power).sqrt() / self.usual
        size = torch.where(empty, 0.0, spread)

        def before(value: Any) -> Any:
            if not _is_feature(value):
                return value
            moved = value if center is None else value - self._like(center, value)
            return moved / self._like(spread, value)

        def after(value: Any) -> Any:
            if not _is_feature(value):
                return value
            scaled = value * self._like(size, value)
            return scaled if center is None else scaled + self._like(center, value)

        given |= tree_map(before, changing)
        inside = [given[position] for position in range(len(args))]
        options = {name: given[name] for name in kwargs}
        return tree_map(after, self.inner(*inside, **options))

    @torch.no_grad()
    def take_for_usual(self, x: Tensor) -> None:
        """Let the size of some features be the usual one, unless they are all zero."""
        size = self._statistics(x)[1].mean().sqrt()
        self.usual.copy_(torch.where(size == 0, self.usual, size))

    def _statistics(self, x: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return the mean of each sample, if it is taken away, and the mean square of the rest."""
        axes = [axis for axis in range(x.ndim) if axis != self.batch_axis]
        center = x.mean(axes, keepdim=True) if self.offset else None
        differences = x if center is None else x - center
        return center, differences.square().mean(axes, keepdim=True)

    def _like(self, per_sample: Tensor, other: Tensor) -> Tensor:
        """Reshape numbers of each sample so that they broadcast over another tensor."""
        shape = [1] * other.ndim
        if other.ndim > self.batch_axis:
            shape[self.batch_axis] = per_sample.numel()
        return per_sample.reshape(shape)

    def extra_repr(self) -> str:
        """Describe the layer in a printed network."""
        return f"usual={float(self.usual):.3g}, offset={self.offset}"


class FunctionLayer(nn.Module):
    """A function, or a method of its first argument, as a layer.

    Examples
    --------
    >>> import torch
    >>> FunctionLayer("clamp")(torch.tensor([-1.0, 2.0]), max=1.0)
    tensor([-1.,  1.])
    """

    def __init__(self, called: Callable[..., Any] | str) -> None:
        super().__init__()
        self.called = called

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        if isinstance(self.called, str):
            return getattr(args[0], self.called)(*args[1:], **kwargs)
        return self.called(*args, **kwargs)

    def extra_repr(self) -> str:
        """Name the function in a printed network."""
        return str(getattr(self.called, "__name__", self.called))


def _is_feature(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 0
