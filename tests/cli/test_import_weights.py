from __future__ import annotations

from pathlib import Path

import torch
from helpers.published_networks import paper_drunet, paper_drunet_state
from typer.testing import CliRunner

import normeq
from normeq.cli import app


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
