"""Published checkpoints give the functions that the descriptions of their layouts define."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.published_networks import (
    kair_drunet,
    kair_drunet_state,
    kair_stack,
    paper_drunet,
    paper_drunet_state,
    paper_fdncnn,
    paper_fdncnn_state,
    random,
    stack_state,
    with_map,
)
from torch.nn import functional as F

from normeq.errors import FileError, UsageError, WeightsError
from normeq.models import import_weights
from normeq.models.published import read_state_dict

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


# --- the paper's layout ---------------------------------------------------------------------


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
        (lambda t: t.fill_(torch.nan), "contains NaN"),
        (lambda t: t.fill_(torch.inf), "contains NaN or infinite"),
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
