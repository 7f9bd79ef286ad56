"""The Python of the guide runs as it stands."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "classical.md"


def test_the_guide_to_classical_denoisers() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})
