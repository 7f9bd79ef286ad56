"""Published checkpoints: each layout's forward, written from its description, is the reference."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.errors import FileError, UsageError, WeightsError
from normeq.models import import_weights
from normeq.models.published import read_state_dict

State = dict[str, Tensor]
WIDTHS = (4, 6, 8)
BLOCKS = 2
DEPTH = 5
PAPER_VARIANTS = ["ordinary", "scale-equiv", "norm-equiv"]
CASES = [
    (v, blind, channels) for v in PAPER_VARIANTS for blind in (True, False) for channels in (1, 3)
]


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    """A difference of meaning then stands out from rounding, which random kernels amplify."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape) / (torch.Size(shape).numel() / shape[0]) ** 0.5


def with_map(x: Tensor, sigma: float | None) -> Tensor:
    return x if sigma is None else torch.cat((x, sigma * torch.ones_like(x[:, :1])), 1)


# --- the paper's layout ---------------------------------------------------------------------


def paper_conv(
    x: Tensor, state: State, name: str, variant: str, padding: int, **options: Any
) -> Tensor:
    """Apply a layer of the paper; `free` trailing input channels are unconstrained."""
    weight, free = state[f"{name}.weight"], options.pop("free", 0)
    if variant != "norm-equiv":
        return F.conv2d(x, weight, state.get(f"{name}.bias"), padding=padding, **options)
    kept = weight[:, : weight.shape[1] - free]
    rolled = kept.flatten(1).roll(1, 1).view_as(kept)
    kernel = torch.cat((rolled - kept + 1 / kept[0].numel(), weight[:, kept.shape[1] :]), 1)
    return F.conv2d(F.pad(x, [padding] * 4, "reflect"), kernel, **options)


def paper_activation(x: Tensor, variant: str) -> Tensor:
    if variant != "norm-equiv":
        return x.relu()
    return x.unflatten(1, (-1, 2)).sort(2).values.flatten(1, 2)


def paper_sum(a: Tensor, b: Tensor, state: State, name: str, variant: str) -> Tensor:
    if variant != "norm-equiv":
        return a + b
    alpha = state[f"{name}.alpha"]
    return alpha * a + (1 - alpha) * b


def paper_block(x: Tensor, state: State, name: str, variant: str) -> Tensor:
    branch = paper_conv(x, state, f"{name}.m_res.0", variant, 1)
    branch = paper_conv(paper_activation(branch, variant), state, f"{name}.m_res.2", variant, 1)
    return paper_sum(x, branch, state, f"{name}.sum", variant)


def paper_drunet(x: Tensor, sigma: float | None, state: State, variant: str) -> Tensor:
    free = 0 if sigma is None else 1
    encoded = [paper_conv(with_map(x, sigma), state, "m_head", variant, 1, free=free)]
    for scale in range(len(WIDTHS) - 1):
        x = encoded[-1]
        for block in range(BLOCKS):
            x = paper_block(x, state, f"m_down.{scale}.{block}", variant)
        encoded.append(paper_conv(x, state, f"m_down.{scale}.{BLOCKS}", variant, 0, stride=2))
    x = encoded[-1]
    for block in range(BLOCKS):
        x = paper_block(x, state, f"m_body.{block}", variant)
    for scale in range(len(WIDTHS) - 1):
        x = paper_sum(x, encoded.pop(), state, f"res.{scale}", variant)
        if variant == "norm-equiv":
            x = F.pixel_shuffle(paper_conv(x, state, f"m_up.{scale}.0.conv1x1", variant, 0), 2)
        else:
            weight, bias = state[f"m_up.{scale}.0.weight"], state.get(f"m_up.{scale}.0.bias")
            x = F.conv_transpose2d(x, weight, bias, stride=2)
        for block in range(1, BLOCKS + 1):
            x = paper_block(x, state, f"m_up.{scale}.{block}", variant)
    x = paper_sum(x, encoded.pop(), state, f"res.{len(WIDTHS) - 1}", variant)
    return paper_conv(x, state, "m_tail", variant, 1)


def paper_fdncnn(x: Tensor, sigma: float | None, state: State, variant: str) -> Tensor:
    x = with_map(x, sigma)
    for layer in range(DEPTH):
        free = 1 if layer == 0 and sigma is not None else 0
        x = paper_conv(x, state, f"fdncnn.{2 * layer}", variant, 1, free=free)
        x = paper_activation(x, variant) if layer < DEPTH - 1 else x
    return x


def drunet_layers(inputs: int, channels: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and weight shape of each layer, in the order of a file."""
    yield "m_head", (WIDTHS[0], inputs, 3, 3)
    for scale, width in enumerate(WIDTHS[:-1]):
        for block in range(BLOCKS):
            yield from (
                ((f"m_down.{scale}.{block}.m_res.{i}"), (width, width, 3, 3)) for i in (0, 2)
            )
        yield f"m_down.{scale}.{BLOCKS}", (WIDTHS[scale + 1], width, 2, 2)
    for block in range(BLOCKS):
        yield from ((f"m_body.{block}.m_res.{i}", (WIDTHS[-1], WIDTHS[-1], 3, 3)) for i in (0, 2))
    for scale, width in enumerate(reversed(WIDTHS[:-1])):
        yield f"m_up.{scale}.0", (WIDTHS[-1 - scale], width, 2, 2)
        for block in range(1, BLOCKS + 1):
            yield from ((f"m_up.{scale}.{block}.m_res.{i}", (width, width, 3, 3)) for i in (0, 2))
    yield "m_tail", (channels, WIDTHS[0], 3, 3)


def paper_drunet_state(variant: str, blind: bool, channels: int) -> State:
    state: State = {}
    for name, shape in drunet_layers(channels + (not blind), channels):
        transposed = name.startswith("m_up") and name.endswith(".0") and "m_res" not in name
        if transposed and variant == "norm-equiv":
            state[f"{name}.conv1x1.weight"] = random(4 * shape[1], shape[0], 1, 1)
            continue
        state[f"{name}.weight"] = random(*shape)
        if variant == "ordinary":
            state[f"{name}.bias"] = torch.randn(shape[1] if transposed else shape[0])
        elif variant == "norm-equiv" and name.endswith("m_res.2"):
            state[name.replace("m_res.2", "sum.alpha")] = torch.rand(1)
    if variant == "norm-equiv":
        state |= {f"res.{scale}.alpha": torch.rand(1) for scale in range(len(WIDTHS))}
    return state


def stack_state(prefix: str, inputs: int, outputs: int, bias: bool, last_bias: bool) -> State:
    state: State = {}
    channels = [inputs, *[6] * (DEPTH - 1), outputs]
    for layer in range(DEPTH):
        state[f"{prefix}.{2 * layer}.weight"] = random(channels[layer + 1], channels[layer], 3, 3)
        if last_bias if layer == DEPTH - 1 else bias:
            state[f"{prefix}.{2 * layer}.bias"] = torch.randn(channels[layer + 1])
    return state


def paper_fdncnn_state(variant: str, blind: bool, channels: int) -> State:
    bias = variant == "ordinary"
    return stack_state("fdncnn", channels + (not blind), channels, bias, last_bias=False)


@pytest.mark.parametrize(("variant", "blind", "channels"), CASES)
@pytest.mark.parametrize("name", ["drunet", "fdncnn"])
def test_paper_layout_gives_the_function_of_the_source(
    name: str, variant: Any, blind: bool, channels: int
) -> None:
    make, forward = {
        "drunet": (paper_drunet_state, paper_drunet),
        "fdncnn": (paper_fdncnn_state, paper_fdncnn),
    }[name]
    state = make(variant, blind, channels)
    ambiguous = name == "fdncnn" and variant != "ordinary"
    net = import_weights(state, "paper", variant if ambiguous else None)
    x, sigma = torch.rand(2, channels, 16, 24), None if blind else 0.2
    assert (net.architecture, net.variant, net.blind, net.channels) == (
        name,
        variant,
        blind,
        channels,
    )
    torch.testing.assert_close(
        net(x, sigma), forward(x, sigma, state, variant), atol=1e-5, rtol=1e-5
    )


def test_paper_fdncnn_without_biases_asks_for_the_variant() -> None:
    with pytest.raises(UsageError, match="scale-equiv or norm-equiv"):
        import_weights(paper_fdncnn_state("norm-equiv", True, 1), "paper")


# --- the layout of KAIR ---------------------------------------------------------------------


def kair_drunet_state(channels: int) -> State:
    def rename(name: str) -> str:
        name = name.replace("m_res", "res")
        for scale in range(len(WIDTHS) - 1):
            name = name.replace(f"m_down.{scale}", f"m_down{scale + 1}")
            name = name.replace(f"m_up.{scale}", f"m_up{len(WIDTHS) - 1 - scale}")
        return f"{name}.weight"

    return {rename(name): random(*shape) for name, shape in drunet_layers(channels + 1, channels)}


def kair_drunet(x: Tensor, sigma: float | None, state: State) -> Tensor:
    def conv(x: Tensor, name: str, **options: Any) -> Tensor:
        return F.conv2d(x, state[f"{name}.weight"], **options)

    def block(x: Tensor, name: str) -> Tensor:
        return x + conv(conv(x, f"{name}.res.0", padding=1).relu(), f"{name}.res.2", padding=1)

    x1 = conv(with_map(x, sigma), "m_head", padding=1)
    x2 = conv(block(block(x1, "m_down1.0"), "m_down1.1"), "m_down1.2", stride=2)
    x3 = conv(block(block(x2, "m_down2.0"), "m_down2.1"), "m_down2.2", stride=2)
    x = block(block(x3, "m_body.0"), "m_body.1")
    x = F.conv_transpose2d(x + x3, state["m_up2.0.weight"], stride=2)
    x = block(block(x, "m_up2.1"), "m_up2.2")
    x = F.conv_transpose2d(x + x2, state["m_up1.0.weight"], stride=2)
    x = block(block(x, "m_up1.1"), "m_up1.2")
    return conv(x + x1, "m_tail", padding=1)


def kair_stack(x: Tensor, state: State) -> Tensor:
    for layer in range(DEPTH):
        name = f"model.{2 * layer}"
        x = F.conv2d(x, state[f"{name}.weight"], state[f"{name}.bias"], padding=1)
        x = x.relu() if layer < DEPTH - 1 else x
    return x


@pytest.mark.parametrize("channels", [1, 3])
def test_kair_drunet(channels: int) -> None:
    state, x = kair_drunet_state(channels), torch.rand(2, channels, 16, 24)
    net = import_weights(state, "kair")
    assert (net.architecture, net.variant, net.blind) == ("drunet", "scale-equiv", False)
    torch.testing.assert_close(net(x, 0.2), kair_drunet(x, 0.2, state), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_kair_dncnn_subtracts_its_output(channels: int) -> None:
    state = stack_state("model", channels, channels, True, True)
    x = torch.rand(2, channels, 15, 22)
    net = import_weights(state, "kair")
    assert net.blind
    torch.testing.assert_close(net(x), x - kair_stack(x, state), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_kair_fdncnn(channels: int) -> None:
    state = stack_state("model", channels + 1, channels, True, True)
    x = torch.rand(2, channels, 15, 22)
    expected = kair_stack(with_map(x, 0.2), state)
    torch.testing.assert_close(
        import_weights(state, "kair")(x, 0.2), expected, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_kair_ffdnet(channels: int) -> None:
    state = stack_state("model", 4 * channels + 1, 4 * channels, True, True)
    x = torch.rand(2, channels, 14, 22)
    net = import_weights(state, "kair")
    expected = F.pixel_shuffle(kair_stack(with_map(F.pixel_unshuffle(x, 2), 0.2), state), 2)
    assert (net.architecture, net.channels) == ("ffdnet", channels)
    torch.testing.assert_close(net(x, 0.2), expected, atol=1e-5, rtol=1e-5)


# --- what is wrong gets a sentence ----------------------------------------------------------


def test_a_key_too_many_is_named() -> None:
    state = kair_drunet_state(1) | {"m_extra.weight": torch.zeros(1)}
    with pytest.raises(WeightsError, match=r"'m_extra\.weight' has no place"):
        import_weights(state, "kair")


def test_a_missing_key_is_named() -> None:
    state = kair_drunet_state(1)
    del state["m_body.1.res.2.weight"]
    with pytest.raises(WeightsError, match=r"m_body\.1\.res\.2\.weight"):
        import_weights(state, "kair")


def test_a_foreign_file_names_its_first_key() -> None:
    with pytest.raises(WeightsError, match="first key is 'encoder'"):
        import_weights({"encoder": torch.zeros(3)}, "paper")


def test_batch_norm_between_convolutions_is_named() -> None:
    state = stack_state("model", 1, 1, True, True) | {"model.3.weight": torch.ones(6)}
    with pytest.raises(WeightsError, match=r"model\.3\.weight"):
        import_weights(dict(sorted(state.items())), "kair")


def test_a_wrong_shape_is_named() -> None:
    state = stack_state("model", 2, 1, True, True) | {"model.4.weight": random(6, 5, 3, 3)}
    with pytest.raises(WeightsError, match=r"model\.4\.weight.*\(6, 5, 3, 3\).*\(6, 6, 3, 3\)"):
        import_weights(state, "kair")


def test_biases_have_no_place_in_an_equivariant_variant() -> None:
    with pytest.raises(WeightsError, match=r"'fdncnn\.0\.bias'"):
        import_weights(paper_fdncnn_state("ordinary", True, 1), "paper", "norm-equiv")


@pytest.mark.parametrize("layout", ["kair", "paper"])
def test_our_own_variants_are_in_no_layout(layout: str) -> None:
    with pytest.raises(WeightsError, match="norm-equiv-wrapped"):
        import_weights(kair_drunet_state(1), layout, "norm-equiv-wrapped")


def test_unknown_layout() -> None:
    with pytest.raises(UsageError, match="kair, paper"):
        import_weights({}, "timm")


class _Code:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("this must never run",))


@pytest.mark.parametrize("content", [_Code(), {"net": _Code()}])
def test_code_is_never_unpickled(tmp_path: Path, content: Any, capsys: Any) -> None:
    torch.save(content, tmp_path / "net.pth")
    with pytest.raises(WeightsError, match="more than tensors"):
        read_state_dict(tmp_path / "net.pth")
    assert "never run" not in capsys.readouterr().out


def test_files_that_hold_no_state_dict(tmp_path: Path) -> None:
    torch.save([torch.zeros(3)], tmp_path / "list.pth")
    with pytest.raises(WeightsError, match="no state dict"):
        read_state_dict(tmp_path / "list.pth")
    torch.save(kair_drunet_state(1), tmp_path / "whole.pth")
    data = (tmp_path / "whole.pth").read_bytes()
    (tmp_path / "half.pth").write_bytes(data[: len(data) // 2])
    with pytest.raises(WeightsError, match=r"half\.pth"):
        read_state_dict(tmp_path / "half.pth")
    (tmp_path / "empty.pth").touch()
    with pytest.raises(WeightsError, match=r"empty\.pth"):
        read_state_dict(tmp_path / "empty.pth")
    with pytest.raises(FileError, match=r"absent\.pth"):
        read_state_dict(tmp_path / "absent.pth")


@pytest.mark.filterwarnings("ignore:.*quantize", "ignore:TypedStorage")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.to(torch.complex64), "dense tensors of real numbers"),
        (lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8), "dense tensors"),
        (lambda t: t.to_sparse(), "dense tensors"),
        (lambda t: t.fill_(torch.nan), "holds NaN"),
        (lambda t: t.fill_(torch.inf), "holds NaN or infinite"),
    ],
    ids=["complex", "quantised", "sparse", "nan", "inf"],
)
def test_tensors_that_are_not_plain_numbers_are_refused(
    change: Any, sentence: str, tmp_path: Path
) -> None:
    torch.save(
        {"model.0.weight": change(torch.zeros(2, dtype=torch.float32))}, tmp_path / "net.pth"
    )
    with pytest.raises(WeightsError, match=sentence):
        read_state_dict(tmp_path / "net.pth")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pth")
    with pytest.raises(FileError, match="not a file"):
        read_state_dict(tmp_path / "pipe.pth")


def test_command_writes_weights_that_load(tmp_path: Path) -> None:
    state, target = paper_drunet_state("norm-equiv", False, 1), tmp_path / "net.safetensors"
    torch.save(state, tmp_path / "net.pth")
    arguments = [
        "import-weights",
        str(tmp_path / "net.pth"),
        "-o",
        str(target),
        "--layout",
        "paper",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "norm-equiv drunet" in result.output
    net, x = normeq.load(target), torch.rand(1, 1, 16, 16)
    assert net.card["source"] == "net.pth"
    torch.testing.assert_close(
        net(x, 0.1), paper_drunet(x, 0.1, state, "norm-equiv"), atol=1e-5, rtol=1e-5
    )


def test_command_says_what_is_wrong(tmp_path: Path) -> None:
    torch.save({"encoder": torch.zeros(3)}, tmp_path / "net.pth")
    arguments = ["import-weights", str(tmp_path / "net.pth"), "-o", "x", "--layout", "kair"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "encoder" in result.output
