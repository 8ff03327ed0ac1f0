"""Build hook: the root folders legacy, modern and compat are installed inside the package ``estimator_bridge``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "estimator_bridge"
FOLDERS = ("legacy", "modern", "compat")


class FoldersInPackageHook(BuildHookInterface):
    """A wheel gets copies; an editable install gets git-ignored links, which type checkers, coverage and doctest follow."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files; ``version`` is "editable" or "standard"."""
        root = Path(self.root)
        for folder in FOLDERS:
            if version == "editable":
                link_folder(root / "src" / PACKAGE / folder, root / folder)
            else:
                build_data["force_include"][str(root / folder)] = f"{PACKAGE}/{folder}"


def link_folder(link: Path, folder: Path) -> None:
    """Makes ``link`` a relative link to ``folder``; anything but a link in its place is somebody's work and stays."""
    target = Path(os.path.relpath(folder, link.parent))
    if link.is_symlink():
        if link.readlink() == target:
            return
        link.unlink()
    elif link.exists():
        raise FileExistsError(f"{link} is in the way of a link to {folder}: move it aside, then install again.")
    link.symlink_to(target, target_is_directory=True)
