"""Reads HTML pages."""

from __future__ import annotations

import html.parser


class Page(html.parser.HTMLParser):
    """Collects the elements that a page opens and does not close, its links, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Page:
    """Returns what a page has; asserts that it is well formed and loads nothing."""
    page = Page()
    page.feed(text)
    assert (page.open, page.links) == ([], [])
    return page
