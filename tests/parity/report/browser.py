"""Pictures of pages in a Chromium without a window, and what of a page is cut off."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_SHOT = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}
# A window is never as narrow as a phone, so the page is shown in frames; the words that are cut off become an attribute.
_FRAMES = """<body style="margin: 0">{frames}<script>
addEventListener("load", () => {{
  document.body.dataset.cut = JSON.stringify([...document.querySelectorAll("iframe")].flatMap((frame) => {{
    const page = frame.contentDocument, edge = page.documentElement.clientWidth;
    return [...page.querySelectorAll("td, th, p, dd, li, h1, h2, text, .legend span")]
      .filter((one) => one.getClientRects().length && !one.closest(".hidden") && one.getBoundingClientRect().right > edge)
      .map((one) => [edge, one.textContent.trim().slice(0, 80)]);
  }}));
}});
</script></body>"""
_FRAME = '<iframe src="{page}" style="border: 0; width: {width}px; height: {height}px"></iframe>'


def picture(page: Path, kind: str, target: Path, *, height: int = 2600) -> Path:
    """Takes a picture of a page.

    Args:
        page: HTML file.
        kind: ``light``, ``dark`` or ``print``.
        target: Path of the picture without its suffix.
        height: Height of the window in pixels.

    Returns:
        The path of the picture.
    """
    if kind == "print":
        path = target.with_suffix(".pdf")
        _chromium(page, "--no-pdf-header-footer", f"--print-to-pdf={path}")
    else:
        path = target.with_suffix(".png")
        _chromium(page, *_SHOT[kind], f"--window-size=1200,{height}", f"--screenshot={path}")
    return path


def phone(page: Path, target: Path, *, height: int = 3600) -> None:
    """Takes a picture of a page as a phone shows it."""
    frames = _write_frames(page, [390], height)
    _chromium(frames, f"--window-size=500,{height}", f"--screenshot={target.with_suffix('.png')}")


def cut_off(page: Path, widths: Sequence[int]) -> list[tuple[int, str]]:
    """Returns the texts that a page cuts off on the right, each with a width at which it does.

    Args:
        page: HTML file.
        widths: Widths of the page in pixels.
    """
    dom = _chromium(_write_frames(page, widths), "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom")
    found = re.search(r'data-cut="([^"]*)"', dom)
    assert found, dom
    return [(width, text) for width, text in json.loads(html.unescape(found[1]))]


def _write_frames(page: Path, widths: Sequence[int], height: int = 900) -> Path:
    frames = "".join(_FRAME.format(page=page.name, width=width, height=height) for width in widths)
    path = page.with_name(f"{page.stem}-frames.html")
    path.write_text(_FRAMES.format(frames=frames), encoding="utf-8")
    return path


def _chromium(page: Path, *options: str) -> str:
    assert CHROMIUM
    shared = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={page.parent / 'profile'}"]
    ended = subprocess.run(
        [CHROMIUM, *shared, *options, page.absolute().as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return ended.stdout
