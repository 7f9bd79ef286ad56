"""Which axes a layer has: what its labels say, else rows and columns are the last two."""

from __future__ import annotations

from collections.abc import Sequence

from normeq.images.axes import axes_from_names


def recognised_axes(labels: Sequence[str], rgb: bool = False) -> str:
    """Return one letter for each axis of a layer's array.

    Labels that napari made up, such as ``-2``, say nothing. Colours are the last axis of an array.

    Examples
    --------
    >>> recognised_axes(["time", "-3", "y", "x"])
    'TQYX'
    >>> recognised_axes(["-3", "-2", "-1"], rgb=True)
    'QYXS'

    Parameters
    ----------
    labels
        Of the layer's axes, without that of colours.
    rgb
        Whether the layer is in colour.
    """
    names = [label if label[:1].isalpha() else None for label in labels]
    axes = axes_from_names(names) or "Q" * (len(labels) - 2) + "YX"
    return axes.replace("S", "Q") + "S" if rgb else axes


def described_axes(axes: str, shape: Sequence[int]) -> str:
    """Say how long each axis is.

    >>> described_axes("TYX", (5, 480, 640))
    'T 5 × Y 480 × X 640'
    """
    return " × ".join(f"{axis} {length}" for axis, length in zip(axes, shape, strict=True))
