"""Pictures as shapes: what is drawn where, in words of SVG. The template writes them down.

Colours are classes (p0, p1, … for pipelines), so that the style sheet decides them for
light, dark and paper. Each pipeline has its own mark too, for whoever sees no colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .units import figure

WIDTH = 720.0
LEFT, RIGHT_EDGE = 150.0, 20.0  # room for labels
ROW = 34.0
LETTER = 9.0  # of small text at its widest: whoever draws it may have another font


@dataclass
class Shape:
    """An SVG element: its name, its attributes, its text or title."""

    tag: str
    attributes: dict[str, Any]
    text: str = ""
    title: str = ""


@dataclass
class Chart:
    """A picture with what it shows in words."""

    name: str
    title: str
    told: str  # for whoever does not see it
    height: float
    width: float = WIDTH
    shapes: list[Shape] = field(default_factory=list)

    def draw(self, tag: str, text: str = "", title: str = "", **attributes: Any) -> None:
        plain = {name.rstrip("_").replace("_", "-"): _plain(value) for name, value in attributes.items()}
        self.shapes.append(Shape(tag, plain, text, title))

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self.draw("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)

    def label(self, x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> None:
        self.draw("text", text, x=x, y=y, text_anchor=anchor, **({"class_": kind} if kind else {}))

    def mark(self, number: int, x: float, y: float, title: str) -> None:
        """A pipeline's own mark."""
        size = 6.0
        kind = f"p{number % 8}"
        if number % 4 == 0:
            self.draw("circle", "", title, cx=x, cy=y, r=size, class_=kind)
            return
        corners = {
            1: [(-size, -size), (size, -size), (size, size), (-size, size)],
            2: [(0, -size * 1.3), (size * 1.2, size), (-size * 1.2, size)],
            3: [(0, -size * 1.4), (size * 1.4, 0), (0, size * 1.4), (-size * 1.4, 0)],
        }[number % 4]
        points = " ".join(f"{_plain(x + dx)},{_plain(y + dy)}" for dx, dy in corners)
        self.draw("polygon", "", title, points=points, class_=kind)


def _plain(value: Any) -> Any:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


@dataclass(frozen=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return self.begin if span <= 0 else self.begin + (value - self.low) / span * (self.end - self.begin)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values within it."""
        step = round_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [count * step for count in range(first, last + 1)]


def round_step(wanted: float) -> float:
    """
    >>> round_step(0.034), round_step(7.0)
    (0.05, 10.0)
    """
    if wanted <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= wanted * 0.999)


def axis(values: Iterable[float], begin: float, end: float, zero: bool = True) -> Scale:
    """A scale that holds all values, from a round one to a round one."""
    known = [*values, *([0.0] if zero else [])]
    low, high = min(known), max(known)
    step = round_step((high - low) / 5)
    return Scale(
        math.floor(low / step + 1e-9) * step,
        max(math.ceil(high / step - 1e-9), math.floor(low / step) + 1) * step,
        begin,
        end,
    )


def across(chart: Chart, scale: Scale, metric: str, top: float, bottom: float) -> None:
    """The lines and labels of an axis from left to right."""
    for tick in scale.ticks():
        told = "0" if abs(tick) < 1e-12 else figure(metric, tick)
        tick_across(chart, scale(tick), top, bottom, told)


def tick_across(chart: Chart, x: float, top: float, bottom: float, text: str) -> None:
    """A line of an axis with its label, which stays within the picture."""
    chart.line(x, top, x, bottom, "grid")
    fits = x + LETTER * len(text) / 2 <= chart.width
    chart.label(x, bottom + 16, text, "middle" if fits else "end", "tick")


def legend(chart: Chart, entries: list[tuple[str, str]], y: float) -> None:
    x = 10.0
    for kind, name in entries:
        if x + 22 + LETTER * len(name) > WIDTH:
            x, y = 10.0, y + 20
            chart.height += 20
        chart.draw("rect", x=x, y=y - 10, width=12.0, height=12.0, class_=kind)
        chart.label(x + 18, y, name, kind="tick")
        x += 34 + LETTER * len(name)
