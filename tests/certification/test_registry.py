from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.small_networks import EVERY_NETWORK, describe, tiny
from helpers.soundness import assert_sound

from normeq.certification import Status, certify

PROVEN = {
    "ordinary": (),
    "scale-equiv": ("scale",),
    "norm-equiv": ("scale", "shift"),
    "norm-equiv-residual": ("scale", "shift"),
    "norm-equiv-wrapped": ("scale", "shift"),
}


def _mostly_slow(options: dict) -> Any:
    """Keep one family of denoisers, and one network of each other, for every day."""
    every_day = options["name"] == "unet" or (
        options["variant"] == "norm-equiv" and options.get("blind", True)
    )
    marks = [] if every_day else [pytest.mark.slow]
    return pytest.param(options, marks=marks, id=describe(options))


@pytest.mark.parametrize("options", [_mostly_slow(options) for options in EVERY_NETWORK])
def test_every_network_is_what_it_says(options: dict) -> None:
    net = tiny(**options)
    certificate = certify(net)
    for which in ("scale", "shift"):
        expected = Status.PROVEN if which in PROVEN[options["variant"]] else Status.BROKEN
        assert getattr(certificate, which) is expected, certificate.table()
    size = net.config.get("image_size", 16)
    image = torch.rand(1, getattr(net, "channels", 1), size, size, dtype=torch.float64)
    sigma = [] if getattr(net, "blind", True) else [torch.tensor([0.1], dtype=torch.float64)]
    assert_sound(net, certificate, image, *sigma)
