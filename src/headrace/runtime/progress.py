"""What a person at a terminal sees of a run: one line. Silent wherever the output is not a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from headrace.units import format_bytes

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from headrace.runtime.survey_run import Progress


_WIDE = 60


class ProgressLine:
    """Shows itself on standard error when asked for; says in one line what is reused in any case."""

    def __init__(self, *, shown: bool) -> None:
        stream = sys.stderr
        self._is_terminal = stream is not None and not stream.closed and stream.isatty()  # pyright: ignore[reportUnnecessaryComparison]
        self._bar: RichProgress | None = _bar() if shown and self._is_terminal else None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.refresh()
            self._bar.stop()

    def say_reused(self, progress: Progress, last_run_at: float | None) -> None:
        if not self._is_terminal or not progress.reused:
            return
        day = time.strftime(" from %d %b", time.localtime(last_run_at)) if last_run_at else ""
        left = progress.total - progress.reused
        sys.stderr.write(f"reused {progress.reused:,} of {progress.total:,}{day}, running {left:,}\n")

    def show(self, progress: Progress) -> None:
        if self._bar is None:
            return
        if self._task is None:
            # Drawn at once, so the columns' fields must be there from the start.
            self._task = self._bar.add_task("", total=progress.total, completed=progress.reused, memory="", failed="")
        paused = "paused " if progress.is_paused else ""
        memory = f"{paused}{format_bytes(progress.memory_bytes)}/{format_bytes(progress.budget_bytes)}"
        failed = f"{progress.failed:,} failed" if progress.failed else ""
        self._bar.update(self._task, completed=progress.done, memory=memory, failed=failed)
        self._bar.refresh()


def _bar() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    console = Console(stderr=True)
    return RichProgress(
        BarColumn(bar_width=20 if console.width >= _WIDE else 5),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}"),
        TextColumn("{task.fields[memory]}"),
        console=console,
        auto_refresh=False,
    )
