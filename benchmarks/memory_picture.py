"""A picture of memory over time, as SVG: the line, the governor's levels, and what the engine did."""

from collections.abc import Iterator, Sequence

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP = 1020, 430, 70, 150, 30
_LEVELS = ((0.70, "skip LOW, shrink", "#caa300"), (0.85, "preempt", "#d9730d"), (0.95, "kill", "#c4332b"))
_COLOURS = {
    "heartbeat skipped": "#8a8a8a",
    "preempted": "#d9730d",
    "killed": "#c4332b",
    "out of memory": "#7a3fb0",
}


def draw(samples: Sequence[tuple[float, int]], events: list[list], budget_bytes: int, title: str) -> str:
    first_s = samples[0][0]
    long_s = max(1.0, samples[-1][0] - first_s)

    def x(at_s: float) -> float:
        return _LEFT + (at_s - first_s) / long_s * (_WIDTH - _LEFT - _RIGHT)

    def y(used_bytes: float) -> float:
        return _TOP + (1 - used_bytes / (budget_bytes * 1.1)) * (_HEIGHT - 2 * _TOP - 40)

    line = " ".join(f"{x(at):.1f},{y(used):.1f}" for at, used in samples)
    floor = y(0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"',
        ' font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        *_levels(budget_bytes, y),
        *_marks(events, x, floor),
        f'<polyline points="{line}" fill="none" stroke="#1f5fa8" stroke-width="1.2"/>',
        f'<line x1="{_LEFT}" y1="{floor}" x2="{_WIDTH - _RIGHT}" y2="{floor}" stroke="black"/>',
        *(
            f'<text x="{x(first_s + part * long_s / 5):.0f}" y="{floor + 60}" text-anchor="middle">'
            f"{part * long_s / 5:.{0 if long_s > 10 else 1}f} s</text>"
            for part in range(6)
        ),
        f'<text x="{_LEFT}" y="18">{title}</text>',
        "</svg>",
    ]
    return "\n".join(parts)


def _levels(budget_bytes: int, y) -> Iterator[str]:
    for share, told, colour in (*_LEVELS, (1.0, "budget", "black")):
        at = y(budget_bytes * share)
        ends = f'x1="{_LEFT}" y1="{at}" x2="{_WIDTH - _RIGHT}" y2="{at}"'
        yield f'<line {ends} stroke="{colour}" stroke-dasharray="4 3"/>'
        yield f'<text x="{_WIDTH - _RIGHT + 5}" y="{at + 4}" fill="{colour}">{share:.0%} {told}</text>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{budget_bytes * share / 1e6:.0f} MB</text>'


def _marks(events: list[list], x, floor: float) -> Iterator[str]:
    rows = {what: floor + 4 + 11 * row for row, what in enumerate(_COLOURS)}
    for at_s, what, _ in events:
        if what in _COLOURS:
            yield (
                f'<line x1="{x(at_s):.1f}" y1="{rows[what]}" x2="{x(at_s):.1f}" y2="{rows[what] + 8}"'
                f' stroke="{_COLOURS[what]}"/>'
            )
    for what, at in rows.items():
        yield f'<text x="{_WIDTH - _RIGHT + 5}" y="{at + 9}" fill="{_COLOURS[what]}">{what}</text>'
