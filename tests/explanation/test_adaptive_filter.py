from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.small_networks import tiny
from skimage import data

import normeq
from normeq.errors import InputError, UsageError
from normeq.explanation import MOST_PIXELS, describe, filter_figure

NORM = ["norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"]
VARIANTS = ["ordinary", "scale-equiv", *NORM]


def photograph(rows: int = 70, columns: int = 90) -> np.ndarray:
    return data.camera()[100 : 100 + rows, 200 : 200 + columns].astype(np.float64) / 255


def jacobian_row(net, image, at, *sigma):
    """The row by one derivative of the whole image, in float64."""
    x = torch.from_numpy(image)[None, None].requires_grad_()
    output = net.double()(x, *sigma)[(0, 0, *at)]
    (row,) = torch.autograd.grad(output, x)
    return float(output.detach()), row[0, 0].numpy()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("architecture", ["fdncnn", "unet"])
@pytest.mark.parametrize("at", [(0, 0), (33, 47), (69, 89)])
def test_the_filter_is_the_row_of_the_jacobian_of_the_whole_image(architecture, variant, at):
    net, image = tiny(architecture, variant).double(), photograph()
    found = normeq.explain(net, image, at)
    value, row = jacobian_row(net, image, at)
    whole = np.zeros_like(image)
    whole[found.window] = found.weights
    np.testing.assert_allclose(whole, row, rtol=0, atol=1e-12)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.sum == pytest.approx(row.sum())
    assert found.effective_pixels == pytest.approx(1 / np.square(row).sum())


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_sum_to_one_if_and_only_if_the_network_is_norm_equivariant(variant):
    found = normeq.explain(tiny("fdncnn", variant).double(), photograph(), (20, 30))
    assert (abs(found.sum - 1) < 1e-12) == (variant in NORM)


def test_a_piecewise_linear_network_has_no_constant_and_biases_give_one():
    torch.manual_seed(1)
    ordinary = tiny("fdncnn", "ordinary").double()
    for name, parameter in ordinary.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    plain = tiny("fdncnn", "norm-equiv").double()
    assert abs(normeq.explain(ordinary, photograph(), (20, 30)).constant) > 1e-3
    assert abs(normeq.explain(plain, photograph(), (20, 30)).constant) < 1e-12
    assert abs(normeq.explain(plain, photograph() + 1e6, (20, 30)).constant) < 1e-6


def test_the_filter_does_not_depend_on_units_even_in_single_precision():
    net, image = tiny("unet", "norm-equiv-residual"), photograph()
    plain = normeq.explain(net, image, (30, 40))
    moved = normeq.explain(net, 50 * image + 1e6, (30, 40))
    np.testing.assert_allclose(moved.weights, plain.weights, atol=1e-4)
    assert moved.value == pytest.approx(50 * plain.value + 1e6, abs=0.01)


def test_only_the_receptive_field_of_a_large_image_is_read():
    class Huge:
        shape = (10**6, 10**6)

        def __getitem__(self, key):
            rows, columns = key[1:]
            return np.random.default_rng(0).random(
                (rows.stop - rows.start, columns.stop - columns.start)
            )

    net = tiny("unet", "norm-equiv-residual")
    found = normeq.explain(net, Huge(), (500_000, 3))
    height, width = found.weights.shape
    assert height <= 2 * (net.receptive_field + net.stride)
    assert width <= net.receptive_field + 2 * net.stride
    assert found.sum == pytest.approx(1, abs=1e-5)


def test_noise_left_is_what_noise_does_to_the_pixel():
    net, image = tiny("fdncnn", "norm-equiv").double(), photograph(40, 40)
    sigma, at = 1e-6, (20, 20)  # so weak that no sorting changes
    found = normeq.explain(net, image, at, sigma=sigma)
    rng = np.random.default_rng(0)
    noisy = image + sigma * rng.standard_normal((400, 1, 40, 40))
    with torch.no_grad():
        values = net(torch.from_numpy(noisy))[:, 0, 20, 20]
    assert found.noise_left == pytest.approx(float(values.std()), rel=0.15)
    doubled = normeq.explain(net, image, at, sigma=np.full(image.shape, 2 * sigma))
    assert doubled.noise_left == pytest.approx(2 * found.noise_left)


@pytest.mark.parametrize("kind", ["number", "map"])
def test_a_network_that_takes_sigma_is_told_it(kind):
    net, image = tiny("unet", "norm-equiv", blind=False).double(), photograph()
    levels = np.linspace(0.05, 0.2, image.size).reshape(image.shape)
    sigma = 0.1 if kind == "number" else levels
    told = 0.1 if kind == "number" else torch.from_numpy(levels)[None, None]
    found = normeq.explain(net, image, (33, 47), sigma=sigma)
    value, row = jacobian_row(net, image, (33, 47), told)
    assert found.value == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(found.weights, row[found.window], atol=1e-12)


def test_a_pixel_said_to_be_free_of_noise_is_its_own_filter():
    net, image = tiny("unet", "norm-equiv", blind=False), photograph()
    levels = np.full(image.shape, 0.1)
    levels[20, 30] = 0
    found = normeq.explain(net, image, (20, 30), sigma=levels)
    assert (found.effective_pixels, found.noise_left) == (1, 0)


def test_colour_networks_weigh_every_channel():
    net = tiny("unet", "norm-equiv-residual", channels=3, separate_channels=True)
    image = np.moveaxis(data.astronaut()[:60, :60], -1, 0) / 255
    found = normeq.explain(net, image, (20, 30), channel=1)
    assert found.weights.shape == (3, *(part.stop - part.start for part in found.window))
    np.testing.assert_allclose(found.weights.sum((1, 2)), [0, 1, 0], atol=1e-5)


def test_functions_and_networks_in_training_work_too():
    blur = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 3, padding=1), torch.nn.Dropout()).train()
    found = normeq.explain(blur, photograph(20, 20), (10, 10))
    assert blur.training
    np.testing.assert_allclose(
        found.weights[9:12, 9:12], blur[0].weight[0, 0].detach().numpy(), rtol=1e-6
    )
    mean = normeq.explain(lambda x: x.mean((2, 3), True).expand_as(x), photograph(5, 5), (1, 1))
    assert mean.effective_pixels == pytest.approx(25)


def test_what_cannot_be_explained_is_one_sentence():
    net, image = tiny("fdncnn", "norm-equiv"), photograph()
    with pytest.raises(UsageError, match="row 70, column 0 is outside the image"):
        normeq.explain(net, image, (70, 0))
    with pytest.raises(InputError, match=r"shape \(H, W\), not \(1, 70, 90\)"):
        normeq.explain(net, image[None], (0, 0))
    with pytest.raises(UsageError, match="cannot be differentiated"):
        normeq.explain(lambda x: x.detach(), image, (0, 0))
    with pytest.raises(UsageError, match="pass sigma"):
        normeq.explain(tiny("fdncnn", "norm-equiv", blind=False), image, (0, 0))
    with pytest.raises(InputError, match=r"more than 262,144 pixels: crop the image"):
        normeq.explain(lambda x: x, np.zeros((MOST_PIXELS + 1, 1)), (0, 0))
    with pytest.raises(InputError, match="NaN"):
        normeq.explain(net, np.full((8, 8), np.nan), (0, 0))


def test_the_picture_has_a_row_for_each_filter():
    pytest.importorskip("matplotlib")
    net = tiny("fdncnn", "norm-equiv")
    filters = [normeq.explain(net, photograph(), at, sigma=0.1) for at in ((0, 0), (30, 40))]
    figure = filter_figure(filters, "two")
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert texts == [describe(each) for each in filters]
    assert "sum of weights  1.0000" in texts[0]
