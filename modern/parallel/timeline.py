"""Timeline of one training step in a pipeline: when each stage computed which micro-batch, as a Chrome trace or a picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

_WIDTH, _ROW, _LEFT = 960, 36, 90
_COLORS = {"forward": "#4c8bf5", "backward": "#f5a04c", "forward and backward": "#6cb56c"}


@dataclasses.dataclass(frozen=True)
class Span:
    """Computation of a micro-batch by a stage.

    Attributes:
        stage: Number of the stage, from 0.
        micro: Number of the micro-batch, from 0.
        way: "forward", "backward", or both for the last stage.
        start: Time at which all inputs were there, in seconds.
        end: Time at which all outputs were there, in seconds.
    """

    stage: int
    micro: int
    way: str
    start: float
    end: float


def spans_of(times: Any, stages: int) -> list[Span]:
    """Returns the spans of a step, given the times of ``PipelinedLoop`` and the number of stages."""
    last = stages - 1
    ways = ["forward"] * last + ["forward and backward"] + ["backward"] * last
    return [
        Span(min(piece, 2 * last - piece), micro, ways[piece], *map(float, times[micro][piece]))
        for micro in range(len(times))
        for piece in range(len(ways))
        if times[micro][piece][1]
    ]


def chrome_trace(spans: Sequence[Span]) -> dict[str, Any]:
    """Returns the object that chrome://tracing and Perfetto read; times are in microseconds from the first span on.

    Example:
        >>> chrome_trace([Span(0, 2, "forward", 5.0, 5.5)])["traceEvents"][0]["name"]
        'forward 2'
    """
    begin = min((span.start for span in spans), default=0.0)
    events = [
        {
            "name": f"{span.way} {span.micro}",
            "cat": span.way,
            "ph": "X",
            "pid": 0,
            "tid": span.stage,
            "ts": 1e6 * (span.start - begin),
            "dur": 1e6 * (span.end - span.start),
        }
        for span in spans
    ]
    names = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": stage, "args": {"name": f"stage {stage}"}}
        for stage in sorted({span.stage for span in spans})
    ]
    return {"traceEvents": [*events, *names], "displayTimeUnit": "ms"}


def drawing(spans: Sequence[Span]) -> str:
    """Returns an SVG picture with a row for each stage."""
    begin, end = min((span.start for span in spans), default=0.0), max((span.end for span in spans), default=1.0)
    stages = 1 + max((span.stage for span in spans), default=0)
    scale = (_WIDTH - _LEFT - 10) / ((end - begin) or 1.0)
    height = str(_ROW * (stages + 2))
    size = {"viewBox": f"0 0 {_WIDTH} {height}", "width": str(_WIDTH), "height": height, "font-family": "sans-serif"}
    picture = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "font-size": "12"})
    ElementTree.SubElement(picture, "rect", {"width": "100%", "height": "100%", "fill": "white"})

    def text(x: float, row: float, words: str) -> None:
        ElementTree.SubElement(picture, "text", {"x": f"{x:.1f}", "y": f"{_ROW * row + 22:.1f}"}).text = words

    def box(x: float, row: float, width: float, way: str, title: str) -> None:
        place = {"x": f"{x:.1f}", "y": f"{_ROW * row + 4:.1f}", "width": f"{max(width, 1.0):.1f}", "height": str(_ROW - 8)}
        found = ElementTree.SubElement(
            picture, "rect", {**place, "fill": _COLORS[way], "fill-opacity": "0.8", "stroke": "white"}
        )
        ElementTree.SubElement(found, "title").text = title

    for stage in range(stages):
        text(8, stage, f"stage {stage}")
    for span in spans:
        x, width = _LEFT + scale * (span.start - begin), scale * (span.end - span.start)
        box(x, span.stage, width, span.way, f"{span.way} of micro-batch {span.micro}: {1000 * (span.end - span.start):.2f} ms")
        if width >= 16:
            text(x + 4, span.stage, str(span.micro))
    for number, way in enumerate(_COLORS):
        box(_LEFT + 220 * number, stages, 20, way, way)
        text(_LEFT + 220 * number + 26, stages, way)
    text(_LEFT, stages + 1, f"One training step of {1000 * (end - begin):.2f} ms; numbers are micro-batches.")
    return ElementTree.tostring(picture, encoding="unicode")
