from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import Result
from helpers.image_samples import sample
from typer.testing import CliRunner

from normeq import images
from normeq.cli import app

VARIABLE = "APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    images.write(tmp_path / "a.png", sample((16, 16), "uint8"))
    return tmp_path / "a.png"


def denoise(image: Path, *before: object) -> Result:
    return CliRunner().invoke(app, [*map(str, before), "denoise", str(image), "--json"])


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_come_from_the_users_folder(
    tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[denoise]\nmodel = "median_filter"\nskip-existing = true\nnoise = "gaussian"\n'
    write(tmp_path / "home/normeq/config.toml", text)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    assert '"model": "median_filter"' in denoise(image).stdout
    again = denoise(image)  # which would be refused without skip-existing
    assert again.exit_code == 0
    assert '"skipped": 1' in again.stdout


def test_the_command_line_goes_before_the_file(tmp_path: Path, image: Path) -> None:
    file = write(tmp_path / "mine.toml", '[denoise]\nmodel = "median_filter"\n')
    command = ["--config", str(file), "denoise", str(image), "--json", "--model", "mean_filter"]
    assert '"model": "mean_filter"' in CliRunner().invoke(app, command).stdout


def test_a_file_in_the_working_directory_does_not_count(
    tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("config.toml", "normeq/config.toml", ".config/normeq/config.toml"):
        write(tmp_path / "work" / name, '[denoise]\nmodel = "nowhere"\n')
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv(VARIABLE, ".")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    result = CliRunner().invoke(app, ["denoise", str(image), "--dry-run"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[denoise]\nmodel = "mine:net"', "would run code"),
        ('[demo]\nmodel = "package.mine:net"', "would run code"),
        ("[denoise]\nmodle = 1", "has no option 'modle'. Did you mean 'model'?"),
        ("[denoise]\ninputs = ['a.tif']", "has no option 'inputs'"),
        ("[denois]\nsigma = 1", "Did you mean 'denoise'?"),
        ("[denoise]\nnoise = 'loud'", "'loud' is not one of"),
        ("[denoise]\ntile = 'wide'", "tile = 'wide': "),
        ("denoise = 3", "does not name a command"),
        ("[denoise", "cannot be read as TOML"),
        (None, "cannot be read as TOML"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(
    text: str | None, sentence: str, tmp_path: Path, image: Path
) -> None:
    file = tmp_path / "mine.toml"
    if text is not None:
        write(file, text)
    result = denoise(image, "--config", file)
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert str(file) in result.stderr
    assert len(result.stderr.splitlines()) == 1
