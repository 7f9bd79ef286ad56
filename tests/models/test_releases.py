from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.denoising.names import canonical
from normeq.errors import UsageError
from normeq.images.provenance import file_digest
from normeq.models import releases, shipped

# The version of the default network that is installed.
DEFAULT = str(releases.installed_release("default"))


@pytest.mark.parametrize("name", shipped())
def test_the_shipped_file_is_the_newest_release(name: str) -> None:
    release = releases.installed_release(name)
    assert release is not None
    file = Path(str(resources.files("normeq") / "weights" / f"{name}.safetensors"))
    assert file_digest(file) == release.sha256, "add the new weights to weights/releases.csv"


def test_versions_of_a_name_count_from_one() -> None:
    for name in shipped():
        versions = [each.version for each in releases.releases() if each.name == name]
        assert versions == list(range(1, len(versions) + 1))


def test_a_version_names_the_same_weights() -> None:
    assert canonical(DEFAULT.capitalize()) == "default"
    assert normeq.load(DEFAULT).card == normeq.load("default").card


def test_another_name_stands_for_the_same_weights() -> None:
    assert canonical("default-sigma") == "default"
    assert normeq.load("default-sigma").card == normeq.load("default").card
    with pytest.raises(
        UsageError, match=rf"default-sigma@1 is not installed, only {DEFAULT}: .*178d"
    ):
        normeq.load("default-sigma@1")


@pytest.mark.parametrize("name", ["default@7", "DEFAULT@0"])
def test_a_version_that_never_was_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"there is no default@\d: there are default@1"):
        normeq.load(name)


def test_a_version_that_is_not_installed_is_named_with_its_digest() -> None:
    result = CliRunner().invoke(app, ["info", "default-real@1"])
    assert result.exit_code == 2
    assert "default-real@1 is not installed, only default-real@" in result.stderr
    assert "89a11ceb036c" in result.stderr


def test_a_file_may_have_an_at_sign_in_its_name(tmp_path: Path) -> None:
    net = normeq.create("fdncnn", width=4, depth=3)
    path = tmp_path / DEFAULT
    normeq.save(net, path, {"data": "own"})
    assert normeq.load(path).card == {"data": "own"}


def test_a_result_says_which_version_made_it(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.random.default_rng(0).normal(size=(24, 24)))
    normeq.denoise_files(tmp_path / "in.npy", tmp_path / "out.npy", noise="gaussian", record=True)
    [note] = [json.loads(path.read_text()) for path in tmp_path.glob("out*.json")]
    assert note["model"] == DEFAULT
