from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.exported import network
from torch import nn

import normeq
from normeq.denoising.onnx_header import KEY, OnnxHeader
from normeq.errors import UsageError


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "net.pt2"
    normeq.export(network("drunet", "norm-equiv"), path, to="torch-export")
    return path


@pytest.mark.parametrize("size", [(1, 1, 1), (2, 1, 7), (1, 8, 8), (3, 13, 9), (1, 64, 33)])
@torch.no_grad()
def test_torch_export_takes_every_size(saved: Path, size: tuple[int, int, int]) -> None:
    samples, *plane = size
    y = torch.rand(samples, 1, *plane, generator=torch.Generator().manual_seed(0))
    exported = torch.export.load(saved).module()
    expected = network("drunet", "norm-equiv")(y)
    torch.testing.assert_close(exported(y), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(exported(70 * y + 3000), 70 * expected + 3000, atol=2e-2, rtol=0)


def test_torch_export_has_a_header(saved: Path) -> None:
    files = {KEY: ""}
    torch.export.load(saved, extra_files=files)
    assert OnnxHeader.from_text(files[KEY]).law == "norm"


class OfEightOnly(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, 8)).flatten(-2)


class Shrinking(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[..., 1:]


@pytest.mark.parametrize(
    ("net", "path", "to", "sentence"),
    [
        (nn.Identity(), "net.bin", "onnx", r"net.bin: .* must end in \.onnx"),
        (nn.Identity(), "net.onnx", "tensorflow", "'tensorflow' is unknown: use one of onnx,"),
        ("bm3d", "net.onnx", "onnx", "bm3d is not a PyTorch module"),
        (OfEightOnly(), "net.onnx", "onnx", "OfEightOnly does not take images of 101 x 75"),
        (Shrinking(), "net.onnx", "onnx", "Shrinking cannot be exported: its output has"),
        (nn.Conv3d(1, 1, 1), "net.onnx", "onnx", "Conv3d does not take two-dimensional images"),
    ],
)
def test_what_cannot_be_exported_is_a_sentence(
    net: nn.Module | str, path: str, to: str, sentence: str, tmp_path: Path
) -> None:
    before = tmp_path / path
    before.write_text("what was there")
    with pytest.raises(UsageError, match=sentence):
        normeq.export(net, before, to=to)  # type: ignore[arg-type]
    assert [file.read_text() for file in tmp_path.iterdir()] == ["what was there"]
