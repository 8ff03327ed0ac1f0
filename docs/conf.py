"""Sphinx configuration of these pages: ``sphinx-build -W -b html docs docs/_build``.

The tutorial's commands are executed, and the page shows what they print; ``-D runs_tutorial=0`` shows what they printed last.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from estimator_bridge import __version__
from tests.examples import tutorial

project = "estimator-bridge"
author = "estimator-bridge contributors"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_argparse_cli"]
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = False

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"estimator-bridge {release}"
html_static_path = ["_static"]
html_copy_source = False
html_show_sphinx = False


def execute_tutorial(app: Sphinx, page: str, source: list[str]) -> None:
    """Puts what the commands of the tutorial print now in the place of what they printed."""
    if app.config.runs_tutorial and page.endswith(f"/{tutorial.PAGE.stem}"):
        with tempfile.TemporaryDirectory() as folder:
            source[0] = tutorial.refreshed(source[0], Path(folder))


def setup(app: Sphinx) -> None:
    """Executes the tutorial while its page is read."""
    app.add_config_value("runs_tutorial", True, "env", types=bool)
    app.connect("source-read", execute_tutorial)
