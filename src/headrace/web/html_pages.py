"""Fills the page's templates. Everything that is put into one is escaped by it; pictures of our own are marked as SVG.

Does not cover: the files' contents (web.api), or the style sheet and scripts (assets/).
"""

from __future__ import annotations

import time
from functools import lru_cache
from importlib import resources
from typing import Any

import minijinja
import msgspec

from headrace.charts.svg_parts import STYLE, without_style
from headrace.units import format_bytes, format_count, format_short_duration

_AGES_S = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def rendered(template: str, **values: Any) -> str:
    """The template with these values; structs become plain data first, for templates call methods of objects."""
    return _environment().render_template(template, **{name: _plain(value) for name, value in values.items()})


def svg(picture: str) -> minijinja.Markup:
    """A picture of our own, which `charts` has escaped already. Its colours are in the page's style sheet."""
    return minijinja.Markup(without_style(picture))


def asset(name: str) -> tuple[bytes, str] | None:
    """A file of assets/ and its content type; None where there is none of this name."""
    return _assets().get(name)


@lru_cache(maxsize=1)
def _assets() -> dict[str, tuple[bytes, str]]:
    types = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    found = resources.files("headrace.web") / "assets"
    return {"charts.css": (STYLE.encode(), "text/css")} | {
        file.name: (file.read_bytes(), types[kind])
        for file in found.iterdir()
        if (kind := file.name.rpartition(".")[2]) in types
    }


@lru_cache(maxsize=1)
def _environment() -> minijinja.Environment:
    found = resources.files("headrace.web") / "templates"
    templates = {file.name: file.read_text() for file in found.iterdir() if file.name.endswith(".html")}
    return minijinja.Environment(
        templates=templates,
        undefined_behavior="strict",
        trim_blocks=True,
        lstrip_blocks=True,
        filters={
            "bytes": format_bytes,
            "short": format_count,
            "number": _number,
            "money": _money,
            "cents": _cents,
            "span": format_short_duration,
            "age": _age,
            "share": _share,
        },
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, minijinja.Markup) else msgspec.to_builtins(value)


def _number(value: int) -> str:
    return f"{value:,}"


def _money(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"${dollars:,.2f}"


def _cents(dollars: float) -> str:
    """A small amount, with as many places as it needs."""
    return _money(dollars) if dollars >= 1 or not dollars else f"${dollars:.2g}" if dollars >= 1e-4 else "< $0.0001"


def _share(part: float, whole: float) -> int:
    """Per cent, rounded down: what is not all done is never 100."""
    return min(100, int(100 * part / whole)) if whole else 100


def _age(at: float) -> str:
    past_s = time.time() - at
    for unit, length_s in _AGES_S:
        if past_s >= length_s:
            count = int(past_s // length_s)
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "now"
