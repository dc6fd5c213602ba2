"""Fills the page's templates. Everything that is put into one is escaped by it; pictures of our own are marked as SVG.

Does not cover: the files' contents (web.api), or the style sheet and scripts (assets/).
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any, cast

import minijinja
import msgspec

from headrace.charts.svg_parts import STYLE, without_style
from headrace.display import counted
from headrace.units import format_bytes, format_count, format_short_duration
from headrace.web.shown_texts import age, clock, money, number, share


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
        debug=False,  # what a template fails on goes to the log, and answers are not for a log
        trim_blocks=True,
        lstrip_blocks=True,
        filters={
            "bytes": format_bytes,
            "short": format_count,
            "number": number,
            "counted": counted,
            "money": money,
            "span": format_short_duration,
            "age": age,
            "clock": clock,
            "share": share,
        },
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]  # pictures among them
    return value if isinstance(value, minijinja.Markup) else msgspec.to_builtins(value)
