"""What users install: the wheel and the sdist, in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "normeq"
DATA = ["py.typed", *(str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.toml"))]
DATA += [
    str(p.relative_to(SOURCE))
    for kind in ("safetensors", "yaml")
    for p in SOURCE.rglob(f"*.{kind}")
]
DATA += [str(p.relative_to(SOURCE)) for p in (SOURCE / "explorer" / "page").iterdir()]

pytestmark = pytest.mark.xdist_group("package")  # one build for all tests of this module


def interpreter(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, which borrows nothing but the dependencies."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    python = interpreter(folder)
    (wheel,) = built.glob("*.whl")
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel],
        check=True,
        capture_output=True,
    )
    # A folder named in a .pth file is searched, but its own .pth files, such as that of an
    # editable normeq, are not followed.
    site_packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def run(python: Path, code: str, folder: Path) -> str:
    # -I: whatever PYTHONPATH says.
    done = subprocess.run(
        [python, "-I", "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    return done.stdout.strip()


def test_the_wheel_holds_weights_recipes_and_types(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert any(name.endswith(".toml") for name in DATA)
    assert {f"normeq/{name}" for name in DATA} <= names
    assert not [name for name in names if not name.startswith(("normeq/", "normeq-"))]


def test_the_sdist_can_be_built_and_tested_from(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "tests/conftest.py", "constraints.txt"}
    assert wanted | {f"src/normeq/{name}" for name in DATA} <= names
    assert not [name for name in names if name.startswith(("runs", ".venv"))]


def test_the_installed_package_works_by_itself(python: Path, tmp_path: Path) -> None:
    code = "import normeq, torch; print(normeq.__file__, normeq.create('unet').stride)"
    path, stride = run(python, code, tmp_path).split()
    assert str(python.parents[1]) in path
    assert stride == "8"
    help_text = subprocess.run(
        [python, "-I", "-m", "normeq", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "check" in help_text


def test_importing_normeq_loads_nothing_heavy(python: Path, tmp_path: Path) -> None:
    code = "import sys, normeq; print([m for m in ('torch', 'numpy', 'zarr') if m in sys.modules])"
    assert run(python, code, tmp_path) == "[]"


def test_denoising_imports_neither_the_compiler_of_torch_nor_scipy_stats(
    python: Path, tmp_path: Path
) -> None:
    code = (
        "import sys, numpy, normeq; normeq.denoise(numpy.eye(64), model='default');"
        "print([m for m in ('torch._dynamo', 'sympy', 'scipy.stats') if m in sys.modules])"
    )
    assert run(python, code, tmp_path) == "[]"


@pytest.mark.slow
def test_every_dependency_is_declared(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=True)
    python = interpreter(tmp_path / "fresh")
    (wheel,) = built.glob("*.whl")
    constraints = ROOT / "constraints.txt"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--constraint", constraints, wheel], check=True
    )
    code = "import normeq; print([getattr(normeq, name) is not None for name in normeq.__all__])"
    assert "False" not in run(python, code, tmp_path)
