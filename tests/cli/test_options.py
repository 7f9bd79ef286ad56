"""The command line offers what the functions behind it take."""

from __future__ import annotations

from typing import get_args

import pytest
from typer.testing import CliRunner

from normeq.cli import app, options
from normeq.conversion.converter import TARGETS
from normeq.denoising.ensemble import EnsembleSize
from normeq.denoising.noise_options import NOISE_NAMES
from normeq.denoising.walk_options import NanPolicy
from normeq.exporting import EXPORT_FORMATS
from normeq.images.bayer import BAYER
from normeq.models.published import FORMATS


def test_choices_are_those_of_the_functions() -> None:
    assert tuple(kind.value for kind in options.AssumedKind) == NOISE_NAMES
    assert {pattern.value for pattern in options.BayerPattern} == set(BAYER)
    assert tuple(policy.value for policy in options.Nan) == get_args(NanPolicy)
    assert tuple(each.size for each in options.Symmetries) == get_args(EnsembleSize)


@pytest.mark.parametrize(
    ("command", "words"),
    [("convert", TARGETS), ("import-weights", FORMATS), ("export", EXPORT_FORMATS)],
)
def test_help_names_every_choice(command: str, words: tuple[str, ...]) -> None:
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert [word for word in words if word not in text] == []
