"""Every network of the registry, in every variant: what it must have, and what it must lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.small_networks import DENOISERS, EVERY_NETWORK, describe, tiny
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils import parametrize

from normeq import equivariance_error
from normeq.errors import UsageError
from normeq.models import UNet, create, load, register, save, variants
from normeq.models.building_blocks import ResidualBlock

every_network = pytest.mark.parametrize("options", EVERY_NETWORK, ids=describe)
every_denoiser = pytest.mark.parametrize(
    "options", [o for o in EVERY_NETWORK if o["name"] in DENOISERS], ids=describe
)


def sample(options: dict[str, Any], dtype: torch.dtype = torch.float64) -> Tensor:
    size = (20, 20) if options["name"] == "vgg8b" else (13, 18)
    return torch.rand(2, 1, *size, dtype=dtype)


def sigma_for(options: dict[str, Any]) -> float | None:
    return None if options.get("blind", True) else 0.1


@every_network
def test_exactly_the_properties_it_must_have(options: dict[str, Any], dtype: torch.dtype) -> None:
    net = tiny(**options).to(dtype)
    double = dtype == torch.float64
    offsets = [1, -1, 10, -10, 100, -100, *([1000, -1000] if double else [])]
    error = equivariance_error(net, sample(options, dtype), sigma_for(options), offsets=offsets)
    allowed = 1e-9 if double else 1e-3
    assert (error.scale <= allowed) == (net.equivariance in ("scale", "norm"))
    assert (error.shift <= allowed) == (net.equivariance == "norm")
    assert (error.norm <= allowed) == (net.equivariance == "norm")
    # What is missing is missing by far: not a matter of the tolerance.
    assert all(e <= allowed or e > 0.01 for e in (error.scale, error.shift, error.norm))


@every_network
@pytest.mark.parametrize("value", [0.0, 0.7])
def test_gradients_are_finite_on_constants(
    options: dict[str, Any], value: float, dtype: torch.dtype
) -> None:
    net = tiny(**options).to(dtype)
    x = torch.full_like(sample(options, dtype), value, requires_grad=True)
    arguments = () if options.get("blind", True) else (0.1,)
    net(x, *arguments).square().sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


@every_network
def test_every_parameter_is_used(options: dict[str, Any]) -> None:
    net = tiny(**options).double()
    arguments = () if options.get("blind", True) else (0.1,)
    net(sample(options), *arguments).square().sum().backward()
    unused = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()]
    assert unused == []


@every_denoiser
@given(height=st.integers(1, 11), width=st.integers(1, 11))
def test_any_height_and_width(options: dict[str, Any], height: int, width: int) -> None:
    net = tiny(**options)
    x = torch.rand(1, 1, height, width)
    assert net(x, sigma_for(options)).shape == x.shape


@pytest.mark.parametrize("name", DENOISERS)
@pytest.mark.parametrize("variant", ["ordinary", "norm-equiv", "norm-equiv-residual"])
@pytest.mark.parametrize("blind", [True, False])
def test_stride_and_receptive_field_are_exact(name: str, variant: str, blind: bool) -> None:
    check_geometry(tiny(name, variant, blind=blind), blind)


@pytest.mark.parametrize("blocks", [(2, 0, 1), (0, 1, 2), (1, 0, 1, 0, 2)], ids=str)
def test_each_stage_has_its_own_number_of_blocks(blocks: tuple[int, ...]) -> None:
    net = tiny("unet", widths=(4, 6, 8)[: len(blocks) // 2 + 1], blocks=blocks)
    stages = [*net.down, net.body, *net.up]
    counts = [sum(isinstance(part, ResidualBlock) for part in stage) for stage in stages]
    assert tuple(counts) == blocks
    check_geometry(net, blind=True)
    x = torch.rand(1, 1, 24, 24, dtype=torch.float64)
    torch.testing.assert_close(net(7 * x + 1000), 7 * net(x) + 1000)


def check_geometry(net: Any, blind: bool) -> None:
    """Fail unless a pixel of the output depends on the input as far as the network says."""
    net.double()
    stride, reach = net.stride, net.receptive_field
    size = stride * (2 * (reach // stride + 2) + 1)
    x = torch.rand(1, 1, size, size, dtype=torch.float64, requires_grad=True)
    output = net(x, None if blind else 0.1)
    centre = size // 2
    farthest = 0
    for phase in range(stride):
        at = centre + phase
        (gradient,) = torch.autograd.grad(output[0, 0, at, at], x, retain_graph=True)
        rows, columns = gradient[0, 0].nonzero(as_tuple=True)
        farthest = max(farthest, *((i - at).abs().max().item() for i in (rows, columns)))
    assert farthest == reach


@pytest.mark.parametrize("name", DENOISERS)
def test_shifting_the_image_by_the_stride_shifts_the_output(name: str) -> None:
    net = tiny(name).double()
    edge = net.receptive_field + 2 * net.stride
    x = torch.rand(1, 1, 2 * edge + 8, 2 * edge + 8, dtype=torch.float64)
    whole, moved = net(x), net(x[..., net.stride :, net.stride :])
    torch.testing.assert_close(
        whole[..., edge:-edge, edge:-edge],
        moved[..., edge - net.stride : -edge, edge - net.stride : -edge],
    )


@pytest.mark.parametrize("name", DENOISERS)
@pytest.mark.parametrize("variant", ["norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"])
def test_sigma_as_number_vector_or_map(name: str, variant: str) -> None:
    net = tiny(name, variant, blind=False)
    x = torch.rand(2, 1, 9, 10)
    as_number = net(x, 0.2)
    torch.testing.assert_close(net(x, torch.tensor([0.2, 0.2])), as_number)
    torch.testing.assert_close(net(x, torch.full((2, 1, 9, 10), 0.2)), as_number)
    assert not torch.allclose(net(x, torch.tensor([0.2, 0.4]))[1], as_number[1])


@pytest.mark.parametrize("name", DENOISERS)
@pytest.mark.parametrize("variant", ["ordinary", "norm-equiv", "norm-equiv-residual"])
def test_colour(name: str, variant: str) -> None:
    net = tiny(name, variant, channels=3).double()
    x = torch.rand(1, 3, 9, 10, dtype=torch.float64)
    assert net(x).shape == x.shape
    assert (equivariance_error(net, x).norm < 1e-9) == (variant != "ordinary")


def test_a_wrapped_network_sees_the_whole_image() -> None:
    net = tiny("fdncnn", "norm-equiv-wrapped")
    assert net.receptive_field is None
    assert net.inner.receptive_field == 4


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: create("resnet"), "'resnet' is unknown: use one of drunet, fdncnn"),
        (lambda: create("unet", "equiv"), "'equiv' is unknown"),
        (
            lambda: create("unet", depth=3),
            "unet has no option 'depth': it has takes_sigma, takes_corr",
        ),
        (lambda: create("unet", blocks=[1, 1]), "for 3 scales use one, or a list of 5"),
        (lambda: create("unet", blocks="4"), "blocks is '4': use a whole number from 1 to 64"),
        (lambda: create("unet", blocks=[1, 1, -1, 1, 1]), "whole numbers from 0 to 64"),
        (lambda: create("vgg8b", "norm-equiv-residual"), "no image to add to"),
        (lambda: create("vgg8b", image_size=8), "at least 16 pixels"),
        (lambda: tiny("unet")(torch.rand(1, 1, 8, 8), 0.1), "is blind"),
        (lambda: tiny("unet", blind=False)(torch.rand(1, 1, 8, 8)), "is not blind"),
        (lambda: tiny("unet")(torch.rand(1, 3, 8, 8)), r"\(N, 1, H, W\), not \(1, 3, 8, 8\)"),
        (
            lambda: tiny("unet", blind=False)(torch.rand(2, 1, 8, 8), torch.rand(3)),
            "3 values of sigma do not fit 2 images",
        ),
        (
            lambda: tiny("unet", blind=False)(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 4, 4)),
            r"must have shape \(1, 1, 8, 8\)",
        ),
    ],
)
def test_mistakes_get_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        call()


def test_the_papers_sizes() -> None:
    def parameters(name: str, **options: Any) -> int:
        with torch.device("meta"):
            net = create(name, "scale-equiv", **options)
        return sum(p.numel() for p in net.parameters())

    # 20 layers of 3x3 kernels: 1 -> 64, 18 times 64 -> 64, 64 -> 1.
    assert parameters("fdncnn") == 9 * (64 + 18 * 64 * 64 + 64)
    assert parameters("ffdnet", blind=False) == 9 * (5 * 64 + 13 * 64 * 64 + 64 * 4)
    assert parameters("drunet", blind=False) == 32_638_656  # the published network's count
    assert parameters("unet") == pytest.approx(1.04e6, rel=0.01)


def test_a_classifier_has_no_residual_form() -> None:
    assert "norm-equiv-residual" not in variants("vgg8b")


@pytest.mark.parametrize("name", ["drunet", "fdncnn", "unet"])
def test_telescoped_kernels_are_the_papers(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = tiny(name, telescoped=True, blind=False).double()
    x = sample({"name": name})
    assert equivariance_error(net, x, 0.1).norm < 1e-9
    raw = {key: value for key, value in net.named_parameters() if key.endswith("original")}
    constrained = [m.weight for m in net.modules() if parametrize.is_parametrized(m)]
    for original, kernel in zip(raw.values(), constrained, strict=True):
        assert not torch.equal(original, kernel)
        assert original.abs().max() <= 1  # torch's own bound, one over the root of the inputs
    save(net, tmp_path / "net.safetensors", {})
    assert torch.equal(load(tmp_path / "net.safetensors").double()(x, 0.1), net(x, 0.1))


def test_only_the_affine_form_has_telescoped_kernels() -> None:
    with pytest.raises(UsageError, match="telescoped kernels need the variant 'norm-equiv'"):
        create("fdncnn", "scale-equiv", telescoped=True)


def test_a_name_that_is_taken_is_not_registered_again() -> None:
    register(UNet)  # which it is already
    other = type("Other", (UNet,), {})
    with pytest.raises(UsageError, match="'unet' exists already"):
        register(other)
    assert type(tiny("unet", "norm-equiv")) is UNet
