"""Names say one thing: no module or class has the name of another, or of an exported function."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "normeq"
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = [path.parent for path in MODULES if path.name == "__init__.py"]


def repeated(pairs: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    places = defaultdict(list)
    for name, path in pairs:
        places[name].append(str(path.relative_to(SOURCE)))
    return {name: found for name, found in places.items() if len(found) > 1}


def is_command(path: Path) -> bool:
    functions = re.findall(r"^def (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return path.parent.name == "cli" and path.stem in functions


def test_no_two_modules_share_a_name() -> None:
    """Modules of commands have the names of their commands, whatever the packages are called."""
    named = [path for path in MODULES if "__" not in path.stem and not is_command(path)]
    assert repeated((path.stem, path) for path in [*named, *PACKAGES]) == {}


def test_no_two_classes_share_a_name() -> None:
    classes = (
        (node.name.lstrip("_"), path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert repeated(classes) == {}


def test_no_module_hides_a_function_of_its_package() -> None:
    for folder in PACKAGES:
        package = importlib.import_module(".".join(("normeq", *folder.relative_to(SOURCE).parts)))
        modules = {path.stem for path in folder.iterdir()}
        exported = {name: getattr(package, name) for name in getattr(package, "__all__", [])}
        functions = {name for name, value in exported.items() if inspect.isfunction(value)}
        assert functions & modules == set(), f"importing a module would hide it in {package}"
