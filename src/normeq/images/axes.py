"""What the axes of an image are called, and which of them are its planes."""

from __future__ import annotations

from collections.abc import Sequence

from normeq.errors import InputError, UsageError

#: How many colours a photograph has.
COLORS = 3
# An array whose last axis is so short (an opacity may follow the colours), and whose axes before it
# are so long, may be in colour.
_MAYBE_COLORS = (COLORS, COLORS + 1)
_SURELY_A_SIDE = 16


def default_axes(
    shape: tuple[int, ...],
    way_out: str = "name its axes with --axes YXS (or YXC, if its channels are not colours)",
) -> str:
    """Return the axes of an array that says nothing: planes are its last two.

    >>> default_axes((2, 3, 64, 64))
    'QQYX'
    """
    if len(shape) < 2:
        raise InputError(
            f"an image has at least two axes, rows and columns; this one has shape {shape}."
        )
    if len(shape) > 2 and shape[-1] in _MAYBE_COLORS and min(shape[-3:-1]) >= _SURELY_A_SIDE:
        raise InputError(
            f"shape {shape} looks like a colour image: {way_out}, or, if the last axis is not "
            "colour, say so with axes (such as ZYX)."
        )
    return "Q" * (len(shape) - 2) + "YX"


def color_axis(axes: str, channels: int) -> str:
    """Return the letter of the axis whose entries are seen together: "" if there is none.

    Samples (S) are the colours of a photograph. Channels (C) are images of their own, such as those
    of fluorescent dyes, unless the denoiser sees several channels.

    >>> color_axis("TYXS", 1), color_axis("CYX", 1), color_axis("CYX", 3)
    ('S', '', 'C')
    """
    if "S" in axes:
        return "S"
    return "C" if channels > 1 and "C" in axes else ""


def axis_letter(name: object) -> str:
    """Return the letter of an axis that has a name.

    Rows, columns and colours (Y, X, S) need names that mean nothing else: colours are denoised
    together, and slices, stains and sites are images of their own (Q).

    >>> [axis_letter(name) for name in ("time", "Channel", "y", "rgb", "slice", None)]
    ['T', 'C', 'Y', 'S', 'Q', 'Q']
    """
    plain = str(name or "Q").upper()
    if plain in ("Y", "X", "S"):
        return plain
    if plain == "RGB":
        return "S"
    return "Q" if plain[0] in "YXS" else plain[0]


def axes_from_names(names: Sequence[object]) -> str | None:
    """Return the letters of axes that have names, if rows and columns are among them.

    >>> axes_from_names(["time", "y", "x"])
    'TYX'
    """
    axes = "".join(map(axis_letter, names))
    return axes if "Y" in axes and "X" in axes else None


def checked_axes(axes: str, shape: tuple[int, ...]) -> str:
    """Return `axes` in upper case if they describe an image of this shape, else raise."""
    axes = axes.upper()
    if len(axes) != len(shape):
        raise UsageError(
            f"axes {axes!r} name {len(axes)} axes, but the image has {len(shape)}: shape {shape}."
        )
    if axes.count("Y") != 1 or axes.count("X") != 1:
        raise UsageError(f"axes {axes!r} must name Y (rows) and X (columns) exactly once.")
    if axes.count("S") > 1:
        raise UsageError(f"axes {axes!r} must name S (samples of a pixel) at most once.")
    return axes


def same_axes(wanted: str | None, found: str) -> str:
    """Let the caller name leading axes; where the planes are is a fact of the file.

    >>> same_axes("tyx", "QYX")
    'TYX'
    """
    if wanted is None:
        return found
    planes = "YXS" if found.endswith("YXS") else "YX"
    if not wanted.upper().endswith(planes):
        raise UsageError(f"axes {wanted!r} do not fit the file, whose axes are {found}.")
    return wanted.upper()
