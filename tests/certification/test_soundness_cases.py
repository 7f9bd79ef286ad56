"""Small networks that once were proven wrongly, or that no certificate could be made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.network_cases import Of
from helpers.soundness import assert_sound, measure
from torch import Tensor, nn
from torch.nn import functional

from normeq.certification import Status, certify


def ratios(x: Tensor) -> Tensor:
    return (x - x.mean()) / (x - x.mean()).abs().mean()


def attention(x: Tensor) -> tuple[Tensor, Tensor]:
    """Weights that add up to one, and values that follow the offset."""
    return ratios(x).flatten(2).softmax(-1), x.flatten(2).mT


def halved_product(x: Tensor) -> Tensor:
    weights, values = attention(x)
    return torch.baddbmm(torch.zeros(1, 1, 1), weights, values, beta=0, alpha=0.5)


def halved_product_of_values_first(x: Tensor) -> Tensor:
    weights, values = attention(x)
    return torch.baddbmm(torch.zeros(1, 1, 1), values.mT, weights.mT, beta=0, alpha=0.5)


def mean_with_a_mask(x: Tensor) -> Tensor:
    mask = torch.ones(1, 1, 4, 5, dtype=torch.bool)
    return torch.cat([x, mask], 1).mean(1, keepdim=True)


def whole(x: Tensor) -> Tensor:
    numbers = torch.zeros(x.shape, dtype=torch.int32)
    numbers.copy_(x)
    return numbers


def mean_by_whole_numbers(x: Tensor) -> Tensor:
    total = (3 * x).sum((2, 3), keepdim=True, dtype=torch.int64) / 3
    return x - total / 20 + x.mean((2, 3), keepdim=True)


def interpolated(x: Tensor) -> Tensor:
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    return torch.lerp(low, high, torch.sigmoid((x - low) / (high - low))).sum((2, 3), keepdim=True)


def hidden(x: Tensor) -> Tensor:
    tokens = x.flatten(2).mT
    queries = ratios(x).flatten(2).mT
    mask = torch.ones(20, 20, dtype=torch.bool).tril(-1)
    return functional.scaled_dot_product_attention(queries, queries, tokens, mask)


def mean_of_a_norm(x: Tensor) -> Tensor:
    _, mean, _ = torch.native_layer_norm(x, [5], None, None, 0.0)
    return x + x.std() * torch.tanh(mean)


WRONG: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "negated weights": ("shift", lambda x: -attention(x)[0] @ attention(x)[1]),
    "scaled product": ("shift", halved_product),
    "scaled product, weights last": ("shift", halved_product_of_values_first),
    "count": ("scale", lambda x: x + torch.linalg.vector_norm(x - x.mean(), 0)),
    "padding with one": (
        "scale",
        lambda x: x + functional.pad(ratios(x), (1, 0), value=1.0)[..., :1],
    ),
    "curve at zero": ("scale", lambda x: x + functional.softplus(x * 0)),
    "log-sum-exp of zeros": ("scale", lambda x: x + torch.logsumexp(x * 0, -1, keepdim=True)),
    "zero to the power of zero": ("scale", lambda x: x + (x * 0) ** 0),
    "mask beside the image": ("shift", mean_with_a_mask),
    "largest of image and constant": ("shift", lambda x: torch.max(x - 0.5, torch.tensor(0))),
    "copied into whole numbers": ("scale", lambda x: whole(40 * x).to(x.dtype) / 40),
    "summed as whole numbers": ("shift", mean_by_whole_numbers),
    "interpolated to a larger shape": ("shift", interpolated),
    "hidden from a query": ("shift", hidden),
    "zero limited from below": ("scale", lambda x: x + (x * 0).clamp(min=1.0)),
    "mean of a layer norm": ("shift", mean_of_a_norm),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_measured_broken_is_not_proven(name: str) -> None:
    which, function = WRONG[name]
    net = Of(lambda _, x: function(x))
    image = torch.rand(1, 1, 4, 5)
    assert measure(net, image)[which] > 1e-2
    certificate = certify(net, image)
    assert getattr(certificate, which) is Status.BROKEN, certificate.table()


def test_a_mask_made_like_the_image_is_a_mask() -> None:
    def masked(_: nn.Module, x: Tensor) -> Tensor:
        mask = torch.zeros_like(x, dtype=torch.bool)
        return torch.where(~mask, x, 0.0)

    image = torch.rand(1, 1, 4, 5)
    certificate = certify(Of(masked), image)
    assert certificate.norm is Status.PROVEN, certificate.table()
    assert_sound(Of(masked), certificate, image.double())


NUMBERS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "full_like": ("proven", lambda x: 2 * x - torch.full_like(x, x.mean().item())),
    "full": ("proven", lambda x: 2 * x - torch.full(x.shape, float(x.mean()))),
    "new_full": ("proven", lambda x: 2 * x - x.new_full(x.shape, x.mean().item())),
    "arithmetic": ("proven", lambda x: x + 0.5 * (float(x.max()) - float(x.min()))),
    "padding": (
        "proven",
        lambda x: functional.pad(x, (1, 1), mode="constant", value=float(x.mean())),
    ),
    "padding at some sizes": (
        "proven",
        lambda x: functional.pad(x, (0, -x.shape[-1] % 4), value=x.mean().item())[..., :5],
    ),
    "a difference": ("broken", lambda x: x - torch.full_like(x, x.mean().item())),
    "a comparison": ("unknown", lambda x: x if float(x.mean()) > 0.5 else 2 * x),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_taken_out_of_the_image_keep_their_law(name: str) -> None:
    expected, function = NUMBERS[name]
    image = torch.rand(1, 1, 4, 5)
    certificate = certify(Of(lambda _, x: function(x)), image)
    assert str(certificate.norm) == expected, certificate.table()
    assert set(certificate.measured) == {"scale", "shift"}
    assert float(torch.tensor(1.5)) == 1.5  # nothing is left behind


def test_shapes_that_depend_on_the_image_are_unknown() -> None:
    certificate = certify(Of(lambda _, x: x - x[x > 0].mean()), torch.rand(1, 1, 4, 5))
    assert certificate.norm is Status.UNKNOWN, certificate.table()
    assert "depends on the image's values" in certificate.culprits[0].reason


@torch.library.custom_op("normeq_tests::uncomputable", mutates_args=())
def uncomputable(x: Tensor) -> Tensor:
    if x.dtype == torch.float64:
        raise NotImplementedError("only in single precision")
    return x.clone()


@uncomputable.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_a_constant_that_cannot_be_computed_is_unknown() -> None:
    net = Of(lambda net, x: x + uncomputable(net.layer.weight), layer=nn.Conv2d(1, 1, 1))
    certificate = certify(net, torch.rand(1, 1, 4, 5))
    assert certificate.norm is Status.UNKNOWN, certificate.table()
    assert "normeq_tests::uncomputable" in {culprit.operation for culprit in certificate.culprits}


class AddLevels(nn.Module):
    def forward(self, x: Tensor, levels: list[Tensor]) -> Tensor:
        return x + levels[0] - levels[1]


def test_noise_levels_may_be_nested() -> None:
    image = torch.rand(1, 1, 4, 5)
    assert certify(AddLevels(), [image, [torch.ones(1), 0.5]]).norm is Status.PROVEN


class AddLevel(nn.Module):
    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        return x + level


@pytest.mark.parametrize("level", [2, 2.0])
def test_whole_numbers_stand_for_noise_levels(level: float) -> None:
    assert certify(AddLevel(), [torch.rand(1, 1, 4, 5), level]).norm is Status.PROVEN


@torch.library.custom_op("normeq_tests::relu", mutates_args=())
def relu_of_a_user(x: Tensor) -> Tensor:
    return (x + 1).relu()


@relu_of_a_user.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_a_users_operation_is_unknown_whatever_its_name() -> None:
    certificate = certify(Of(lambda _, x: relu_of_a_user(x)), torch.rand(1, 1, 4, 5))
    assert certificate.scale is Status.UNKNOWN
    assert "normeq_tests::relu" in certificate.table()


def test_a_number_of_the_image_that_is_bent_is_not_proven() -> None:
    net = Of(lambda _, x: x - torch.sym_max(x.mean().item(), 0.5) + x.mean())
    assert certify(net, torch.rand(1, 1, 4, 5)).shift is not Status.PROVEN


def test_what_is_proven_but_measured_otherwise_is_unknown() -> None:
    amplified = Of(lambda _, x: x + torch.relu(1e6 * (x - 0.9999999 * x)))
    certificate = certify(amplified, torch.rand(1, 1, 4, 5))
    assert certificate.shift is Status.UNKNOWN, certificate.table()
    assert "more than rounding explains" in certificate.table()
    nothing = Of(lambda _, x: x + torch.log(x - x.amax() - 1) * 0)
    assert certify(nothing, torch.rand(1, 1, 4, 5)).norm is not Status.PROVEN


def test_outputs_that_are_no_tensors_do_no_harm() -> None:
    certificate = certify(Of(lambda _, x: (x, None)), torch.rand(1, 1, 4, 5))
    assert certificate.norm is Status.PROVEN


ALIASES: dict[str, Callable[[Tensor], Tensor]] = {
    "multiply": lambda x: x + torch.multiply(x - x.mean(), 0.5),
    "subtract": lambda x: x + torch.subtract(x, x.mean()),
    "divide": lambda x: x + torch.divide(x - x.mean(), 2.0),
    "negative": lambda x: x + torch.negative(x - x.mean()),
    "absolute": lambda x: x + torch.absolute(x - x.mean()),
    "clip": lambda x: x + torch.clip(x - x.mean(), min=0),
    "concatenate": lambda x: torch.concatenate([x, x], 1),
    "diff": lambda x: x + torch.diff(x, dim=-1, prepend=x[..., :1]),
    "norm": lambda x: x + torch.linalg.norm(x - x.mean()),
    "type of the image": lambda x: x * torch.ones(1).type_as(x),
    "einsum": lambda x: torch.einsum("nchw,c->nchw", x, torch.ones(1)),
}


@pytest.mark.parametrize("name", ALIASES)
def test_other_names_of_lawful_operations_are_known(name: str) -> None:
    net = Of(lambda _, x: ALIASES[name](x))
    certificate = certify(net, torch.rand(1, 1, 4, 5))
    assert certificate.norm is Status.PROVEN, certificate.table()


def blurred(x: Tensor) -> Tensor:
    spectrum = torch.fft.rfft2(x)
    rows, columns = torch.fft.fftfreq(x.shape[-2])[:, None], torch.fft.rfftfreq(x.shape[-1])
    return torch.fft.irfft2(spectrum * torch.exp(-(rows**2 + columns**2)), s=x.shape[-2:])


def wavy(x: Tensor) -> Tensor:
    places = torch.stack(torch.meshgrid(*[torch.linspace(-0.6, 0.6, 4)] * 2, indexing="xy"), -1)
    return functional.grid_sample(x, places[None].to(x.dtype), align_corners=False)


def warped(x: Tensor, padding: str) -> Tensor:
    steps = torch.tanh(ratios(x))
    places = torch.stack((steps, steps.roll(1, 2)), -1)[:, 0]
    return functional.grid_sample(x, places, padding_mode=padding, align_corners=False)


def solved(x: Tensor) -> Tensor:
    matrix = torch.eye(4, dtype=x.dtype) + 0.1 * torch.ones(4, 4, dtype=x.dtype).tril()
    return torch.linalg.solve(matrix, matrix @ x)


def wiener(x: Tensor) -> Tensor:
    y = (x - x.mean())[0, 0]
    gram = y @ y.mT + y.square().sum() * torch.eye(4, dtype=x.dtype)
    return x + (gram @ torch.linalg.solve(gram, y))[None, None]


def scattered(x: Tensor) -> Tensor:
    flat = x.flatten(2)
    index = torch.arange(20).flip(0).expand(flat.shape)
    return torch.zeros_like(flat).scatter(2, index, flat).reshape(x.shape)


def counted(x: Tensor) -> Tensor:
    flat, index = x.flatten(), torch.arange(20) // 4
    sums = torch.zeros(5, dtype=x.dtype).index_add(0, index, flat)
    return sums / torch.zeros(5, dtype=x.dtype).index_add(0, index, torch.ones_like(flat))


def by_distances(x: Tensor) -> Tensor:
    """Average pixels with weights that fall with the distance of their values."""
    pixels = x.flatten(2).mT
    weights = torch.exp(-torch.cdist(pixels, pixels) / x.std())
    return (weights / weights.sum(-1, keepdim=True) @ pixels).mT.reshape(x.shape)


CASES: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "filter in frequency": ("proven", blurred),
    "mean by distances": ("proven", by_distances),
    "distances from a point": ("broken", lambda x: x + torch.cdist(x, x.new_ones(1, 1, 1, 5))),
    "magnitudes": ("broken", lambda x: x + torch.fft.fft2(x).abs().mean()),
    "magnitudes of differences": ("proven", lambda x: x + torch.fft.fft2(x - x.mean()).abs().sum()),
    "real part": ("proven", lambda x: torch.fft.ifft2(torch.fft.fft2(x)).real),
    "fixed places": ("proven", wavy),
    "places in the image": ("proven", lambda x: warped(x, "border")),
    "places outside": ("broken", lambda x: 3 * warped(2 * x, "zeros")),
    "linear system": ("proven", solved),
    "system of the image": ("proven", wiener),
    "scatter": ("proven", scattered),
    "means by index": ("proven", counted),
    "hypotenuse": ("proven", lambda x: x + torch.hypot(x - x.mean(), x - x.amin())),
    "angle": ("proven", lambda x: x + x.std() * torch.atan2(x - x.mean(), x - x.amin())),
    "angle of the image": ("broken", lambda x: x + torch.atan2(x, x.mean() - x)),
    "addcdiv": ("proven", lambda x: torch.addcdiv(x, x - x.mean(), ratios(x).exp())),
    "glu": ("proven", lambda x: x + x.std() * functional.glu(ratios(torch.cat((x, x), 1)), 1)),
    "truths": ("proven", lambda x: torch.where((x > x.mean()) & ~(x < x.mean()), x, x.mean())),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sampling_scattering_spectra_and_systems(name: str) -> None:
    expected, function = CASES[name]
    net, image = Of(lambda _, x: function(x)), torch.rand(1, 1, 4, 5)
    certificate = certify(net, image)
    assert str(certificate.norm) == expected, certificate.table()
    if expected == "proven":
        assert max(measure(net, image.double()).values()) < 1e-6
