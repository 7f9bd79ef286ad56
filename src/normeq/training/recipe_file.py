"""Recipes as TOML files: shipped ones by name, the user's by path, with some fields replaced."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from normeq.errors import FileError, UsageError, reason
from normeq.training.recipe import Recipe

# Bytes of a recipe, a hundred times what ours have.
_LARGEST_FILE = 2**17


def shipped_recipes() -> dict[str, Path]:
    """Name and file of every recipe in the package."""
    folder = Path(str(files("normeq.training") / "recipes"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_recipe(name_or_path: str | Path, overrides: list[str] | None = None) -> Recipe:
    """Read a shipped recipe by its name, or a TOML file, with some fields replaced.

    Examples
    --------
    >>> from normeq.training import load_recipe
    >>> load_recipe("tiny", ["optimization.steps=70"]).optimization.steps
    70

    Parameters
    ----------
    name_or_path
        A name of `shipped_recipes`, or the path of a TOML file.
    overrides
        ``"section.key=value"``, the value written as in TOML; quotes may be left out, and
        ``none`` takes a value away.
    """
    table = _read_table(name_or_path)
    for override in overrides or []:
        _override(table, override)
    try:
        return Recipe.model_validate(table)
    except ValidationError as error:
        raise UsageError(_sentence(str(name_or_path), error)) from error


def _read_table(name_or_path: str | Path) -> dict[str, Any]:
    """Read the TOML file of a recipe, of a limited size."""
    path = shipped_recipes().get(str(name_or_path), Path(name_or_path))
    try:
        size = path.stat().st_size if path.is_file() else None
        text = "" if size is None or size > _LARGEST_FILE else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        size = None
    if size is None:
        raise FileError(
            f"recipe '{name_or_path}' is neither a readable file nor one of the shipped recipes: "
            f"{', '.join(shipped_recipes())}."
        )
    if size > _LARGEST_FILE:
        raise FileError(f"recipe '{path}' has {size:,} bytes, more than {_LARGEST_FILE:,}.")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"recipe '{path}' is not valid TOML: {reason(error)}.") from error


def changes(before: dict[str, Any], recipe: Recipe) -> list[str]:
    """Name the fields in which a recipe differs from an earlier one.

    Examples
    --------
    >>> from normeq.training import load_recipe
    >>> tiny = load_recipe("tiny").model_dump(mode="json")
    >>> changes(tiny, load_recipe("tiny", ["seed=3", "optimization.steps=70"]))
    ['seed=3 (was 0)', 'optimization.steps=70 (was 100)']
    """
    old, new = _fields(before), _fields(recipe.model_dump(mode="json"))
    names = [name for name in new | old if new.get(name) != old.get(name)]
    return [f"{name}={new.get(name)} (was {old.get(name)})" for name in names]


def _fields(table: dict[str, Any], section: str = "") -> dict[str, Any]:
    """Return the fields of nested tables under their dotted names."""
    fields: dict[str, Any] = {}
    for key, value in table.items():
        is_section = isinstance(value, dict)
        fields |= _fields(value, f"{section}{key}.") if is_section else {section + key: value}
    return fields


def _override(table: dict[str, Any], override: str) -> None:
    dotted, equals, text = override.partition("=")
    *sections, key = dotted.strip().split(".")
    if not equals or not key:
        raise UsageError(
            f"'{override}' is not of the form key=value, such as optimization.steps=1000."
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        value = None if text.strip() == "none" else text.strip()
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise UsageError(f"'{dotted}' does not name a field: '{section}' is not a section.")
    table[key] = value


def _sentence(name: str, error: ValidationError) -> str:
    """Put the first problem of a recipe into words that name the field and the way out."""
    first, *others = error.errors()
    # Of several alternatives for a field, the one that went deepest is what was meant.
    same = [first, *(other for other in others if other["loc"][:2] == first["loc"][:2])]
    problem = max(same, key=lambda each: len(each["loc"]))
    place = [str(part) for part in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        known = ", ".join(_section(place[:-1]).model_fields)
        return f"recipe '{name}' has an unknown field '{'.'.join(place)}'; allowed here: {known}."
    # What follows the field names the alternative that was tried, or an element.
    field = ".".join(place[:2]) or "the recipe"
    if problem["type"] == "missing":
        return f"recipe '{name}' lacks the field '{field}'."
    shown = "" if isinstance(problem["input"], dict) else f" is {problem['input']!r}"
    message = problem["msg"].removeprefix("Value error, ")
    return f"recipe '{name}': '{field}'{shown}; {message[0].lower()}{message[1:]}."


def _section(place: list[str]) -> type[BaseModel]:
    section: type[BaseModel] = Recipe
    for name in place:
        annotation = section.model_fields[name].annotation
        kinds = get_args(annotation) or (annotation,)  # a table may be optional
        section = next(kind for kind in kinds if issubclass(kind, BaseModel))
    return section
