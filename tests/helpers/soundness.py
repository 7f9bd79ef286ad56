"""The law of certificates: proven implies measured, and measured broken implies not proven."""

from __future__ import annotations

import copy

import torch
from torch import nn

from normeq.certification import Certificate, Status

GAINS = (1e-3, 0.3, 40.0)
OFFSETS = (-300.0, -1.0, 2.0, 50.0)


def measure(net: nn.Module, image: torch.Tensor, *sigma: torch.Tensor) -> dict[str, float]:
    """Worst errors in double precision, relative to gain or offset, the same noise each time."""
    net = copy.deepcopy(net).double()

    def f(y: torch.Tensor, gain: float = 1.0) -> torch.Tensor:
        torch.manual_seed(0)
        with torch.no_grad():
            return net(y, *(gain * s for s in sigma))

    reference = f(image)
    return {
        "scale": max(float((f(g * image, g) / g - reference).abs().max()) for g in GAINS),
        "shift": max(
            float((f(image + m) - reference - m).abs().max()) / (abs(m) + 1) for m in OFFSETS
        ),
    }


def assert_sound(
    net: nn.Module, certificate: Certificate, image: torch.Tensor, *sigma: torch.Tensor
) -> None:
    """Whatever is proven must be measured, and whatever is measured broken must not be proven."""
    errors = measure(net, image, *sigma)
    for which, error in errors.items():
        status = getattr(certificate, which)
        guilty = [culprit for culprit in certificate.culprits if culprit.property == which]
        assert (status is Status.PROVEN) == (not guilty)
        if error > 1e-6:
            assert status is not Status.PROVEN, (which, error)
    if certificate.shift is Status.PROVEN and certificate.bound < 1:
        with torch.no_grad():
            single, levels = image.float(), [s.float() for s in sigma]
            reference = net(single, *levels)
            for offset in OFFSETS:
                error = float((net(single + offset, *levels) - reference - offset).abs().max())
                assert error <= certificate.bound * (abs(offset) + 1)
