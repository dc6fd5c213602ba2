"""Shows progress on standard error: drawn over itself on a terminal, or as plain lines for a log.

Does not cover: how often (progress.refresh), or the words (progress.text).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from headrace.limits import ProgressBar
from headrace.progress.notebook import is_notebook
from headrace.progress.pace import Pace, Progress
from headrace.progress.refresh import Canvas
from headrace.progress.text import Line, log_line, one_line, several_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_USUAL_SIZE = (80, 25)


def canvas_for(wanted: ProgressBar) -> Canvas | None:
    """None where it is not wanted, and where there is no terminal unless a log was asked for."""
    stream = _standard_error()
    if wanted is False or stream is None or (wanted is None and is_notebook()):
        return None
    if wanted == "log":
        return ProgressLog(stream)
    # Where something draws already, another run for instance, a second drawing would only tear the first.
    if not stream.isatty() or hasattr(stream, "rich_proxied_file"):
        return None
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    if console.is_interactive:
        return TerminalLine(console, wanted)
    # A terminal that cannot move its cursor would pile up drawings; lines in their place must be asked for.
    return ProgressLog(stream) if wanted else None


def say_reused(progress: Progress, last_run_at: float | None, count_failed: Callable[[], int]) -> None:
    """Print how many interviews are reused, from when, and how many of them had failed, at a terminal. Also without a
    progress line: a run that ends at once would surprise otherwise.
    """
    stream = _standard_error()
    if stream is None or not stream.isatty() or not progress.reused:
        return
    day = time.strftime(" from %d %b", time.localtime(last_run_at)) if last_run_at else ""
    left = progress.total - progress.reused
    failed = count_failed()
    how = f", {failed:,} of them failed (retry_failed=True or --retry-failed asks again)" if failed else ""
    stream.write(f"reused {progress.reused:,} of {progress.total:,}{day}{how}, running {left:,}\n")


def _standard_error() -> TextIO | None:
    stream = sys.stderr
    return stream if stream is not None and not stream.closed else None  # pyright: ignore[reportUnnecessaryComparison]


class ProgressLog:
    """A line at the start, one a minute, one at the end."""

    every_s = window_s = 60.0

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def draw(self, progress: Progress, pace: Pace) -> None:
        clock = time.strftime("%Y-%m-%d %H:%M:%S")
        self._stream.write(f"{clock}  {log_line(progress, pace)}\n")
        self._stream.flush()

    def close(self) -> None:
        pass


class TerminalLine:
    """One line, or several, drawn over themselves; never wider than the terminal is at that moment."""

    every_s = 0.2  # a drawing takes half a millisecond: five a second are smooth, and 0.3 % of a core
    window_s = 15.0

    def __init__(self, console: Console, wanted: ProgressBar) -> None:
        from rich.live import Live

        self._console = console
        self._has_several_lines = wanted == "lines"
        # What the program prints meanwhile goes above the line, but only what goes to a terminal anyway: rich would
        # send it to this one, and `> answers.txt` would stay empty.
        prints_here = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=prints_here)

    def draw(self, progress: Progress, pace: Pace) -> None:
        self._console.size = size = _size_of(self._console.file.fileno())
        width, is_ascii = size[0] - 1, not self._console.encoding.startswith("utf")
        if self._has_several_lines:
            lines = several_lines(progress, pace, width, is_ascii=is_ascii)
        else:
            lines = [one_line(progress, pace, width, is_ascii=is_ascii)]
        if not self._live.is_started:
            self._live.start()
            self._console.show_cursor(True)  # a killed process could not bring it back
        self._live.update(_styled(lines), refresh=True)

    def close(self) -> None:
        self._live.stop()


def _size_of(terminal: int) -> tuple[int, int]:
    """Ask this very terminal for its size: rich would believe COLUMNS, or ask standard input."""
    columns, rows = os.get_terminal_size(terminal)
    return columns or _USUAL_SIZE[0], rows or _USUAL_SIZE[1]


def _styled(lines: list[Line]) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for part in line:
            text.append(part.text, part.tone.value or None)
    return text
