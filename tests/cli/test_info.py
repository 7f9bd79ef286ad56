from __future__ import annotations

from pathlib import Path

from helpers.image_samples import sample
from typer.testing import CliRunner

from normeq import images
from normeq.cli import app


def test_info_of_images_and_models(tmp_path: Path, weights: Path) -> None:
    images.write(tmp_path / "a.png", sample((16, 24, 3), "uint8"))
    about = CliRunner().invoke(app, ["info", str(tmp_path / "a.png")]).stdout
    assert "16 x 24 x 3" in about
    assert "YXS" in about
    about = CliRunner().invoke(app, ["info", str(weights)]).stdout
    assert "norm-equiv-residual" in about
    assert "receptive field" in about
    assert "trained on" in about
