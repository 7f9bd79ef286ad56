from __future__ import annotations

from pathlib import Path

import pytest
from helpers.small_networks import tiny
from typer.testing import CliRunner

import normeq
from normeq.cli import app

FACTORIES = """
import torch, normeq
def ordinary():
    return torch.nn.Conv2d(1, 1, 3, padding=1)
def with_sigma():
    return normeq.create("unet", "norm-equiv", blind=False, widths=(4, 6), blocks=1)
def colour():
    return torch.nn.Conv2d(3, 3, 3, padding=1)
def fails():
    def f(image):
        raise ValueError("too small")
    return f
def function():
    return abs
def needs_arguments(size):
    return None
class Raises(torch.nn.Module):
    channels = 1
    def forward(self, x):
        raise RuntimeError("out of luck")
def raises():
    return Raises()
"""


@pytest.fixture
def factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"factories_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.parametrize(
    ("variant", "verdict"),
    [
        ("ordinary", "not equivariant"),
        ("scale-equiv", "scale-equivariant, but not normalization-equivariant"),
        ("norm-equiv", "normalization-equivariant"),
        ("norm-equiv-residual", "normalization-equivariant"),
        ("norm-equiv-wrapped", "normalization-equivariant"),
    ],
)
def test_a_weights_file(variant: str, verdict: str, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    normeq.save(tiny("unet", variant), path, {})
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == f"{path} is {verdict}."
    assert len(result.stdout.splitlines()) == 8  # heading, three images in two precisions, verdict


@pytest.mark.parametrize(
    ("factory", "verdict"),
    [
        ("ordinary", "not equivariant"),
        ("with_sigma", "normalization-equivariant"),
        ("function", "scale-equivariant, but not normalization-equivariant"),
        ("colour", "not equivariant"),
    ],
)
def test_a_factory_of_the_user(factory: str, verdict: str, factories: str) -> None:
    result = CliRunner().invoke(app, ["check", f"{factories}:{factory}"])
    assert result.exit_code == 0
    assert f" is {verdict}." in result.stdout


@pytest.mark.parametrize(
    ("model", "code", "sentence"),
    [
        ("nothing.safetensors", 2, "there is no model 'nothing.safetensors'"),
        ("{factories}:missing", 2, "cannot be imported"),
        ("{factories}:needs_arguments", 2, "could not be called without arguments"),
        ("no_such_module:net", 2, "cannot be imported"),
        ("{factories}:fails", 2, "does not take an image of 48x48 pixels (too small)"),
    ],
)
def test_mistakes_are_sentences(model: str, code: int, sentence: str, factories: str) -> None:
    result = CliRunner().invoke(app, ["check", model.format(factories=factories)])
    assert result.exit_code == code
    assert result.stderr.startswith("normeq: ")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_prove_prints_the_certificate_and_draws_it(factories: str) -> None:
    result = CliRunner().invoke(app, ["check", "--prove", f"{factories}:ordinary"])
    assert result.exit_code == 1
    assert "norm   broken" in result.output
    assert "it pads with zeros" in result.output
    arguments = ["check", "--prove", f"{factories}:with_sigma", "--draw", "graph.png"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "norm   proven" in result.output
    assert Path("graph.png").stat().st_size > 5000


def test_prove_refuses_what_is_no_network(factories: str) -> None:
    result = CliRunner().invoke(app, ["check", "--prove", f"{factories}:function"])
    assert result.exit_code == 2
    assert "only networks can be proven" in result.output


def test_a_network_that_raises_is_reported_as_such(factories: str) -> None:
    result = CliRunner().invoke(app, ["check", "--prove", f"{factories}:raises"])
    assert result.exit_code == 2
    assert "out of luck" in result.stderr
    assert "Traceback" not in result.stderr


def test_prove_with_a_shape_and_further_arguments(factories: str) -> None:
    options = ["--prove", "--shape", "1,1,24,17", "--input", "sigma=0.2"]
    result = CliRunner().invoke(app, ["check", f"{factories}:with_sigma", *options])
    assert result.exit_code == 0, result.output
    assert "at 24x17 pixels" in result.stdout
    for wrong in (["--shape", "1,x"], ["--input", "sigma"], ["--input", "gamma=1"]):
        result = CliRunner().invoke(app, ["check", f"{factories}:with_sigma", "--prove", *wrong])
        assert result.exit_code == 2, result.output
