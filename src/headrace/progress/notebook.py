"""Shows progress in a notebook: a small block below the cell, in text and in HTML. No widgets.

It is drawn in the caller's thread (interviews.delivery): what another thread displays goes to whichever cell ran last,
and past whatever captures the output of this one. Does not cover: the words (progress.text).
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from headrace.limits import ProgressBar
from headrace.progress.pace import Pace, Progress
from headrace.progress.text import figures_line, one_line, plain, several_lines

_WIDTH = 120


def panel_for(wanted: ProgressBar) -> Panel | None:
    """None where nothing is to be shown, and outside notebooks."""
    is_wanted = wanted is None or wanted is True or wanted == "lines"
    return Panel(has_several_lines=wanted == "lines") if is_wanted and is_notebook() else None


def is_notebook() -> bool:
    """Whether IPython is there with a kernel. It is never loaded to find out: who has a notebook has loaded it."""
    interactive: Any = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return getattr(shell, "kernel", None) is not None


class Panel:
    """One display, updated in place."""

    every_s = 0.5
    window_s = 15.0

    def __init__(self, *, has_several_lines: bool) -> None:
        self._has_several_lines = has_several_lines
        self._handle: Any = None

    def draw(self, progress: Progress, pace: Pace) -> None:
        shown = {"text/plain": self._text(progress, pace), "text/html": self._html(progress, pace)}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def close(self) -> None:
        pass

    def _text(self, progress: Progress, pace: Pace) -> str:
        if self._has_several_lines:
            return "\n".join(map(plain, several_lines(progress, pace, _WIDTH, is_ascii=False)))
        return plain(one_line(progress, pace, _WIDTH, is_ascii=False))

    def _html(self, progress: Progress, pace: Pace) -> str:
        if self._has_several_lines:
            return f"<pre>{_escaped(self._text(progress, pace))}</pre>"
        bar = f'<progress value="{progress.done}" max="{max(1, progress.total)}"></progress>'
        return f"<div>{bar} <code>{_escaped(plain(figures_line(progress, pace)))}</code></div>"


def _escaped(text: str) -> str:
    import html

    return html.escape(text)
