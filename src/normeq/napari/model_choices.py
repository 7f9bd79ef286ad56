"""The models to choose from."""

from __future__ import annotations

#: What stands for a weights file of the user.
OWN_FILE = "file"


def model_choices() -> list[tuple[str, str]]:
    """Return what is shown and what it stands for: shipped networks, a file, classical methods.

    >>> dict(model_choices())["median_filter (classical)"]
    'median_filter'
    """
    from normeq.classical import METHODS
    from normeq.models import shipped

    return [
        *((f"{name} (shipped)", name) for name in shipped()),
        ("a weights file ...", OWN_FILE),
        *((f"{name} (classical)", name) for name in METHODS),
    ]
