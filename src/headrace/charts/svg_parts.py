"""Elements of SVG, with every text escaped; colours for light and dark. Does not cover: what is drawn (bar_svg).

Colours stand in the elements for a light page and in the style sheet for a dark one; each picture has a background of
its own, so that it is readable wherever it is put. There is no script, no `id` and nothing that loads, and no link but
those that a page gives.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from itertools import accumulate
from typing import TypeAlias
from unicodedata import east_asian_width

from headrace.display import cell_text

WIDTH = 720
FONT_PX = 13
_NARROW, _NARROW_PX, _USUAL_PX, _WIDE_PX = frozenset("ijl.,:;'|!·()[] "), 5.2, 8.3, 13.0
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LIGHT = {
    "page": "#ffffff",
    "text": "#1f2328",
    "faint": "#59636e",
    "grid": "#d1d9e0",
    "value": "#2f6fb3",
    "other": "#9db7d1",
    "none": "#a8b0b8",
    "failed": "#c4332b",
    "shrink": "#9a7300",
    "preempt": "#bf5b00",
    "emergency": "#c4332b",
}
_DARK = {
    "page": "#161a20",
    "text": "#e6edf3",
    "faint": "#9aa5b1",
    "grid": "#3a424c",
    "value": "#6cb0f5",
    "other": "#4f6f91",
    "none": "#6b7480",
    "failed": "#ff7b72",
    "shrink": "#d9b23d",
    "preempt": "#f0934a",
    "emergency": "#ff7b72",
}
STYLE = "@media (prefers-color-scheme: dark) {" + "".join(
    f" .hr-{name} {{ fill: {colour} }} .hr-{name}-line {{ stroke: {colour} }}" for name, colour in _DARK.items()
) + " }"  # fmt: skip
_STYLE_ELEMENT = f"<style>{STYLE}</style>"
Attribute: TypeAlias = str | float | int


def escaped(text: str) -> str:
    """A text as XML holds it, in an element or an attribute."""
    return escape(_NO_XML.sub("\ufffd", text), quote=True)


def element(name: str, body: str = "", /, **attributes: Attribute) -> str:
    """An element. `body` is SVG already; `_` in an attribute's name is a `-`, and one at its end is dropped."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items()
    )  # fmt: skip
    return f"<{name}{written}>{body}</{name}>" if body else f"<{name}{written}/>"


def text(x: float, y: float, words: str, colour: str = "text", **attributes: Attribute) -> str:
    return element("text", escaped(words), x=x, y=y, **filled(colour), **attributes)


def filled(colour: str) -> dict[str, Attribute]:
    return {"fill": _LIGHT[colour], "class_": f"hr-{colour}"}


def stroked(colour: str) -> dict[str, Attribute]:
    return {"stroke": _LIGHT[colour], "class_": f"hr-{colour}-line", "fill": "none"}


def line(x1: float, y1: float, x2: float, y2: float, colour: str, **attributes: Attribute) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **stroked(colour), **attributes)


def document(title: str, height: float, parts: list[str], width: int = WIDTH, *, is_linked: bool = False) -> str:
    """A whole picture, with its title at the top. One with links is a group, for an image has no parts to a reader."""
    shown = fitted(title, width - 32)
    head = [
        element("title", escaped(shown)),
        _STYLE_ELEMENT,
        element("rect", width=width, height=height, **filled("page")),
        text(16, 26, shown, font_size=15, font_weight=600),
    ]
    return element(
        "svg",
        "\n".join(["", *head, *parts, ""]),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {_value(height)}",
        width=width,
        height=height,
        role="group" if is_linked else "img",
        font_family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
        font_size=FONT_PX,
    )


def without_style(picture: str) -> str:
    """A picture for an HTML page that has `STYLE` in its own style sheet."""
    return picture.replace(_STYLE_ELEMENT, "", 1)


def text_px(words: str) -> float:
    """About how wide a text is: rather too wide than too narrow, since fonts differ."""
    return sum(map(_letter_px, words))


def fitted(words: str, room_px: float) -> str:
    """A text on one line, cut to the room there is."""
    words = cell_text(words, max(4, int(room_px / _NARROW_PX)))
    if text_px(words) <= room_px:
        return words
    ends = accumulate(map(_letter_px, words), initial=_WIDE_PX)  # the dots take some room
    fitting = sum(end <= room_px for end in ends) - 1
    return words[: max(1, fitting)].rstrip() + "…"


@lru_cache(4_096)
def _letter_px(letter: str) -> float:
    if letter in _NARROW:
        return _NARROW_PX
    is_wide = letter in "mwMW@%—" or east_asian_width(letter) in "WF"
    return _WIDE_PX if is_wide else _USUAL_PX + 1 if letter.isupper() else _USUAL_PX


def _value(value: Attribute) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return escaped(str(value))
