"""The small networks keep what makes the originals what they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from normeq.reproduce.networks import NLRN, DnCNN, Restormer, SwinIR, random_network
from normeq.reproduce.networks.swinir import _mask, _merge, _partition

every_network = pytest.mark.parametrize("factory", [DnCNN, NLRN, SwinIR, Restormer])


@every_network
@pytest.mark.parametrize("shape", [(1, 1, 16, 16), (2, 1, 13, 19)])
def test_any_shape_comes_back(factory: type[nn.Module], shape: tuple[int, ...]) -> None:
    assert random_network(factory)(torch.rand(shape)).shape == shape


@every_network
def test_samples_do_not_mix(factory: type[nn.Module]) -> None:
    net = random_network(factory).double()
    batch = torch.rand(2, 1, 16, 16, dtype=torch.float64)
    torch.testing.assert_close(net(batch)[1:], net(batch[1:]))


@every_network
def test_colour(factory: type[nn.Module]) -> None:
    assert factory(channels=3)(torch.rand(1, 3, 16, 16)).shape == (1, 3, 16, 16)


@every_network
def test_gradients_reach_every_parameter(factory: type[nn.Module]) -> None:
    net = random_network(factory)
    net(torch.rand(1, 1, 16, 16)).square().sum().backward()
    idle = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


def test_restormer_has_no_bias() -> None:
    assert not any(name.endswith("bias") for name, _ in Restormer().named_parameters())


def test_swinir_windows_come_back_together() -> None:
    tokens = torch.rand(2, 8, 12, 3)
    windows = _partition(tokens, 4)
    assert windows.shape == (2, 6, 16, 3)
    torch.testing.assert_close(windows[0, 1].reshape(4, 4, 3), tokens[0, :4, 4:8])
    torch.testing.assert_close(_merge(windows, 4, 8, 12), tokens)


def test_swinir_attends_only_to_true_neighbours() -> None:
    assert not _mask(8, 8, 4, 0).any()
    shifted = _mask(8, 8, 4, 2)
    assert not shifted[0].any()
    # In the last window, rows 4, 5 of the image are followed by rows 0, 1.
    apart = shifted[3].reshape(4, 4, 4, 4)
    assert apart[0, 0, 1, 1] == 0.0
    assert apart[0, 0, 2, 0] == apart[0, 0, 0, 2] == -100.0


def test_swinir_information_crosses_windows() -> None:
    net = random_network(SwinIR).double()
    image = torch.rand(1, 1, 16, 16, dtype=torch.float64, requires_grad=True)
    net(image)[0, 0, 5, 5].backward()
    assert image.grad is not None
    assert image.grad[0, 0, 9, 9] != 0


def test_nlrn_averages_in_its_neighbourhood() -> None:
    net = random_network(lambda: NLRN(steps=1, neighbourhood=3)).double()
    net.nonlocal_average.key.weight.data.zero_()
    x = torch.rand(1, 16, 6, 6, dtype=torch.float64)
    average, _ = net.nonlocal_average(x, None)
    bias = net.nonlocal_average.key.bias
    assert bias.any()
    inner = net.nonlocal_average.value(x)[:, :, 1:4, 2:5].mean((2, 3))
    torch.testing.assert_close(average[:, :, 2, 3], inner)


def test_random_networks_leave_the_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    random_network(DnCNN)
    torch.testing.assert_close(torch.rand(3), expected)
