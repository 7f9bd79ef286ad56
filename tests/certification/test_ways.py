"""Sizes and branches, and networks that remember what they have seen."""

from __future__ import annotations

import torch
from helpers.network_cases import Of, affine
from torch import nn
from torch.nn import functional as F

import normeq
from normeq.certification import Status, certify
from normeq.certification.ways import branches, way_of


def test_padding_by_nothing_is_another_way_than_padding_by_something() -> None:
    def forward(net, x):
        return net.up(net.down(F.pad(x, (0, -x.shape[-1] % 2, 0, -x.shape[-2] % 2))))

    net = Of(
        forward,
        down=normeq.nn.AffineConv2d(1, 4, 2, 2),
        up=normeq.nn.AffineConvTranspose2d(4, 1, 2),
    )
    certificate = certify(net)
    assert certificate.shift is Status.BROKEN, certificate.table()
    assert certify(net, torch.zeros(1, 1, 8, 8)).norm is Status.PROVEN


def test_a_number_that_depends_on_the_size_is_another_way() -> None:
    net = Of(lambda net, x: net.conv(x)[..., ::2, ::2] * (1 + x.shape[-1] % 2), conv=affine(1, 1))
    assert len(branches(net, [torch.zeros(1, 1, 16, 24)])) == 2
    assert certify(net).shift is Status.BROKEN


def test_large_examples_are_measured_at_a_smaller_size_that_goes_the_same_way() -> None:
    net = nn.Sequential(affine(1, 2), affine(2, 1))
    way = way_of(net, [torch.zeros(1, 1, 128, 96), torch.full((1, 1, 128, 96), 0.5)][:1])
    assert way.small[0].shape == (1, 1, 32, 24)
    assert way.sizes == [(128, 96)]
    level = torch.full((1, 1, 128, 96), 0.5)

    class Conditioned(nn.Module):
        def forward(self, x, sigma):
            return x + (x - x.mean()).sign() * sigma if x.shape[-1] > 20 else 2 * x

    _, smaller = way_of(Conditioned(), [torch.zeros(1, 1, 128, 96), level]).small
    assert smaller.shape == (1, 1, 32, 24)
    assert float(smaller.mean()) == 0.5
    certificate = certify(Conditioned(), (torch.zeros(1, 1, 128, 96), level))
    assert certificate.norm is Status.PROVEN, certificate.table()
    assert certificate.sizes == ((128, 96),)


def test_what_a_network_remembers_is_forgotten_between_measurements() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = affine(1, 1)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return self.conv(x) + self.calls * (x - x.mean())

    net = Counting()
    certificate = certify(net, torch.zeros(1, 1, 8, 8))
    assert max(certificate.measured.values()) < 1e-9
    assert float(net.calls) == 0
