"""A plot of lines as SVG."""

from __future__ import annotations

import math
from typing import List, Mapping, Sequence, Tuple
from xml.sax.saxutils import escape

Points = Sequence[Tuple[float, float]]

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 690, 50, 380
_COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#7d3c98")
_INTERVALS_MAX = 6


def plot_lines(title: str, x_label: str, y_label: str, lines: Mapping[str, Points]) -> str:
    """Returns the text of an SVG file: a line for each entry, with its name in a legend. Both axes begin
    at 0."""
    x_ticks = _ticks(max(x for points in lines.values() for x, _ in points))
    y_ticks = _ticks(max(y for points in lines.values() for _, y in points))
    x_end, y_end = x_ticks[-1], y_ticks[-1]

    def at(x: float, y: float) -> Tuple[float, float]:
        across = _LEFT + (_RIGHT - _LEFT) * x / x_end
        return across, _BOTTOM - (_BOTTOM - _TOP) * y / y_end

    parts = [_text(_WIDTH / 2, 28, title, size=17)]
    parts.append(_text((_LEFT + _RIGHT) / 2, _HEIGHT - 16, x_label))
    turned = f'transform="rotate(-90 18 {(_TOP + _BOTTOM) / 2})"'
    parts.append(_text(18, (_TOP + _BOTTOM) / 2, y_label, attributes=turned))
    parts.extend(_text(at(x, 0)[0], _BOTTOM + 20, f"{x:.6g}") for x in x_ticks)
    for y in y_ticks:
        up = at(0, y)[1]
        parts.append(_text(_LEFT - 8, up + 5, f"{y:.6g}", anchor="end"))
        parts.append(f'<path d="M{_LEFT} {up:.1f}H{_RIGHT}" stroke="#ddd"/>')
    parts.append(f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="#444"/>')
    for place, (name, points) in enumerate(lines.items()):
        parts.extend(_line(place, name, [at(x, y) for x, y in points]))
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
    background = f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    return "\n".join([start, background, *parts, "</svg>", ""])


def _ticks(end: float) -> List[float]:
    """Multiples of 1, 2 or 5 times a power of 10, from 0 to the first that is not below `end`."""
    power = 10.0 ** math.floor(math.log10(end))
    steps = [power * factor for factor in (0.1, 0.2, 0.5, 1, 2)]
    step = next(step for step in steps if math.ceil(end / step) <= _INTERVALS_MAX)
    return [step * count for count in range(math.ceil(end / step) + 1)]


def _line(place: int, name: str, points: Points) -> List[str]:
    colour = _COLOURS[place % len(_COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    y = _TOP + 18 * place + 8
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<path d="M{_RIGHT - 130} {y}h24" stroke="{colour}" stroke-width="2"/>',
        _text(_RIGHT - 98, y + 5, name, anchor="start"),
    ]


def _text(
    x: float, y: float, text: str, *, size: int = 13, anchor: str = "middle", attributes: str = ""
) -> str:
    style = f'font-family="sans-serif" font-size="{size}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} {attributes}>{escape(text)}</text>'
