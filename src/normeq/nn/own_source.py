"""Where a network's own source is: lines that its author wrote, for messages."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

#: The packages of torch and of normeq, which are not a network's own source.
_NOT_OWN = (Path(torch.__file__).parent, Path(__file__).parents[1])


def innermost(places: Sequence[tuple[str, str]]) -> str:
    """Return the last of some places that a user wrote: neither torch's nor ours nor generated.

    Examples
    --------
    >>> innermost([("/home/me/net.py", "12"), ("<eval_with_key>.1", "5")])
    'net.py:12'
    """
    own = [
        (Path(file).name, line)
        for file, line in places
        if not file.startswith("<") and not any(Path(file).is_relative_to(p) for p in _NOT_OWN)
    ]
    return ":".join(own[-1]) if own else ""


def raising_line(error: BaseException) -> str:
    """Return the innermost line of the network's own source through which an error came."""
    frames = traceback.extract_tb(error.__traceback__)
    return innermost([(frame.filename, str(frame.lineno)) for frame in frames])


def located(net: nn.Module) -> str:
    """Name a network by its class, and the line where its own forward pass starts.

    Examples
    --------
    >>> from torch import nn
    >>> located(nn.Sequential())  # torch's own forward pass
    'Sequential'
    """
    name = type(net).__name__
    forward = getattr(type(net), "forward", None)  # that of a ScriptModule is hidden
    code = None if forward is None else getattr(inspect.unwrap(forward), "__code__", None)
    line = "" if code is None else innermost([(code.co_filename, str(code.co_firstlineno))])
    return f"{name} ({line})" if line else name
