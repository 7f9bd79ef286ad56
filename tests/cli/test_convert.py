from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

from normeq.cli import app
from normeq.conversion import load_twin
from normeq.errors import WeightsError

SOURCE = """
from torch import nn
def network():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU(),
                         nn.Conv2d(4, 1, 3, padding=1))
def with_batch_norm():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Conv2d(4, 1, 1))
class Leveled(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 1, 3, padding=1)
    def forward(self, x, sigma):
        import torch
        return self.conv(torch.cat([x, sigma.reshape(-1, 1, 1, 1).expand_as(x)], 1))
def function():
    return abs
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"networks_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return name


def network() -> nn.Module:
    names: dict[str, object] = {}
    exec(SOURCE, names)
    return names["network"]()


def test_a_trained_network_is_converted_saved_and_loaded(source: str) -> None:
    trained = network()
    save_file(trained.state_dict(), "trained.safetensors")
    torch.save(trained.state_dict(), "trained.pth")
    for weights in ("trained.safetensors", "trained.pth"):
        options = ["--to", "norm-equiv-residual", "--weights", weights, "-o", "twin.safetensors"]
        result = CliRunner().invoke(app, ["convert", f"{source}:network", *options])
        assert result.exit_code == 0, result.output
        assert "GroupNorm of ratios" in result.stdout
    twin = load_twin("twin.safetensors", network())
    y = torch.rand(1, 1, 9, 11, dtype=torch.float64)
    double = twin.double()
    with torch.no_grad():
        torch.testing.assert_close(double(7 * y + 1000), 7 * double(y) + 1000)
    torch.testing.assert_close(twin.inner[0].weight.float(), trained[0].weight)


def test_batch_norm_is_folded_unless_it_is_to_be_trained(source: str) -> None:
    command = [
        "convert",
        f"{source}:with_batch_norm",
        "--to",
        "norm-equiv",
        "-o",
        "twin.safetensors",
    ]
    folded = CliRunner().invoke(app, command)
    assert "BatchNorm2d  ->  folded into Conv2d" in folded.stdout
    kept = CliRunner().invoke(app, [*command, "--train"])
    assert "BatchNorm2d  ->  BatchNorm2d of ratios" in kept.stdout


def test_a_further_argument_is_given_a_value(source: str) -> None:
    command = ["convert", f"{source}:Leveled", "--to", "norm-equiv", "-o", "twin.safetensors"]
    options = ["--shape", "1,1,16,16", "--input", "sigma=0.1"]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 0, result.output


def test_refusals_are_sentences(source: str, tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = ["-o", "twin.safetensors"]
    result = run(app, ["convert", f"{source}:network", "--to", "better", *out])
    assert result.exit_code == 2
    assert "not a variant" in result.stderr
    result = run(app, ["convert", f"{source}:function", "--to", "norm-equiv", *out])
    assert result.exit_code == 2
    save_file({"other": torch.zeros(1)}, "other.safetensors")
    other = ["--weights", "other.safetensors"]
    result = run(app, ["convert", f"{source}:network", "--to", "norm-equiv", *other, *out])
    assert result.exit_code == 1
    assert "does not contain the weights" in result.stderr
    assert not Path("twin.safetensors").exists()
    with pytest.raises(WeightsError, match="names no twin"):
        load_twin("other.safetensors", network())
