"""What becomes of memory when it is freed."""

from __future__ import annotations

import ctypes
import sys

# Options of the C library's mallopt.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed() -> bool:
    """Let this process keep freed memory for its next tensors; return whether it does.

    The C library of Linux gives large blocks back to the system at once, and gets the next ones
    page by page, zeroed, which takes a good part of the time of a convolutional network on the
    processor. The process then holds on to the most that it has used, and to gaps between blocks.
    """
    if not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:  # a C library other than glibc
        return False
    return bool(set_option(_MMAP_MAX, 0)) and bool(set_option(_TRIM_THRESHOLD, 2**31 - 1))
