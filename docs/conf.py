"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import torch
from sphinx_gallery.sorting import ExplicitOrder

import normeq

sys.path.insert(0, str(Path(__file__).parent))
from browser_demo import write_demo

mpl.use("agg")
torch.set_num_threads(1)  # small images: more threads only wait for each other

project = "normeq"
author = copyright = "The normeq developers"
version = release = normeq.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples", "demo_page"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring is a link where that name is documented

myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the order of the gallery is an object of Python

autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "DTypeLike", "NDArray")}
autodoc_preserve_defaults = True
autosummary_imported_members = True
autosummary_context = {"top_level": normeq.__all__}
autosummary_ignore_module_all = False
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder(
        [
            "any_units.py",
            "noise_levels.py",
            "photon_noise.py",
            "adaptive_filters.py",
            "convert_a_network.py",
            "certify_and_draw.py",
            "classical_methods.py",
        ]
    ),
    "image_scrapers": ("matplotlib",),
    "abort_on_example_error": True,
    "run_stale_examples": True,  # the library may have changed where an example has not
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "normeq"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"show_prev_next": False, "header_links_before_dropdown": 6}
html_sidebars = {"guides": [], "index": [], "commands": [], "architecture": []}


def write_commands(_: object) -> None:
    """Write the reference of the command line from the commands themselves."""
    page = Path(__file__).parent / "commands.md"
    command = [sys.executable, "-m", "typer", "normeq.cli", "utils", "docs", "--name", "normeq"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    page.write_text(text.replace("# `normeq`", "# Commands", 1), encoding="utf-8")


def add_demo(app, failure: Exception | None) -> None:
    """Put the demo beside the pages; without npm or ONNX it says what it lacks."""
    if failure is None and app.builder.format == "html":
        missing = write_demo(Path(app.outdir) / "demo")
        if missing:
            print(missing)


def setup(app) -> None:
    """Connect what this project adds to the build."""
    app.connect("builder-inited", write_commands, priority=0)
    app.connect("build-finished", add_demo)
