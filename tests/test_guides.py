"""The Python of the guides runs as it stands."""

import re
from pathlib import Path

import pytest

from normeq.models import shipped

GUIDE = Path(__file__).parents[1] / "docs" / "denoise.md"


@pytest.mark.skipif(
    not {"default", "default-sigma"} <= set(shipped()), reason="the default weights are not here"
)
def test_the_guide_to_denoising() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})


@pytest.mark.parametrize("name", ["published-weights", "speed"])
def test_guides_without_weights(name: str) -> None:
    text = (GUIDE.parent / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})
