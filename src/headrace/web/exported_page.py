"""A run as one HTML file to hand on: its figures, money, memory, failures, pictures of its questions and first rows.

The file has its style and pictures in it, no script, and nothing that loads: it looks the same from a disk and from any
web server. It is bounded: what comes first fills the room, and the file says what was left out. It is written whole or
not at all. Does not cover: the pages of a server (web.pages).
"""

from __future__ import annotations

import csv
import hashlib
import io
import time
from base64 import b64encode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import minijinja
import msgspec

from headrace.charts.bar_svg import bar_svg
from headrace.display import cell_text, counted
from headrace.errors import HeadraceError, OptionError
from headrace.plain_files.replacing import replacing
from headrace.results.export.export_targets import checked_target
from headrace.results.overview import overview_columns
from headrace.results.plots.kept_charts import kept_chart
from headrace.results.plots.kept_counts import AskedPicture
from headrace.results.results import Results
from headrace.units import format_bytes
from headrace.web.api.failure_groups import FAILURE_GROUPS, FailuresAsked
from headrace.web.api.question_pictures import shown_question
from headrace.web.api.run_money import RUN_MONEY
from headrace.web.api.run_rows import RUN_ROWS, RowsAsked, RowsPage
from headrace.web.api.run_summary import RUN_SUMMARY, OneRun, RunSummary
from headrace.web.html_pages import asset, rendered, svg
from headrace.web.pages.table_page import shown_cells
from headrace.web.shown_files import ShownFile, ShownFiles, ShownKind
from headrace.web.table_query import TableQuery

EXPORT_BYTES = 5_000_000
_NOTES_BYTES = 4_000
_MOST_ROWS, _ROWS_AT_ONCE, _LETTERS = 1_000, 100, 200
_MOST_GROUPS, _MOST_NOTES, _LONGEST_REASON = 20, 12, 200
_STYLE_SHEETS = ("page.css", "table.css", "charts.css")
# Below this width letters in a picture would be too small: its box scrolls.
_PICTURE_STYLE = (
    ".picture .chart svg { min-width: 420px; } .picture { min-width: 0; }"
    " .picture h3 .faint { font-weight: 400; font-size: .85rem; }"
)
_PICTURE_PX = 480
_COUNT_WITHIN_S = 3_600.0


class ExportedFile(msgspec.Struct, frozen=True):
    """What was written; `left_out` says in words what is in the run and not in the file."""

    path: Path
    size_bytes: int
    left_out: tuple[str, ...]


def export_page(run_path: Path, path: Path, *, most_bytes: int = EXPORT_BYTES) -> ExportedFile:
    """Write the run's page to `path`, with at most so many bytes."""
    run = _run_file(run_path)
    target = checked_target(path.expanduser(), run_path)
    text, left_out = _Export(run).page(most_bytes)
    encoded = text.encode("utf-8", "replace")
    with replacing(target) as unfinished:
        unfinished.write_bytes(encoded)
    return ExportedFile(path, len(encoded), tuple(left_out))


def _run_file(path: Path) -> ShownFile:
    if not path.expanduser().is_file():
        raise OptionError(f"There is no run file at {path}.", fix="Name one: headrace runs lists yours.")
    files = ShownFiles([path])
    (file,), _ = files.latest()
    if file.kind is ShownKind.ENGINE:
        raise OptionError(f"{path} is an engine's file.", fix="Run files can be exported: headrace runs lists yours.")
    return file


class _ExportRoom:
    """How many bytes may still be written."""

    def __init__(self, left_bytes: int) -> None:
        self._left_bytes = left_bytes

    def take(self, part: str) -> bool:
        """Whether a part has room; it is then counted."""
        needed = len(part.encode("utf-8", "replace")) + 1
        if needed > self._left_bytes:
            return False
        self._left_bytes -= needed
        return True


class _Export:
    def __init__(self, file: ShownFile) -> None:
        self._file = file
        self._files = ShownFiles([file.path])
        self._left_out: list[str] = []
        self._is_cut = False  # whether a text in the table was cut

    def page(self, most_bytes: int) -> tuple[str, list[str]]:
        values = self._always()
        least = len(rendered("export.html", **values).encode("utf-8", "replace")) + _NOTES_BYTES
        if least > most_bytes:
            raise OptionError(
                f"{format_bytes(most_bytes)} are too few: the figures and failures alone take {format_bytes(least)}.",
                fix="Give a larger --export-size.",
            )
        room = _ExportRoom(most_bytes - least)
        pictures, columns, rows, in_file = self._of_rows(room, values["run"].done)
        values |= {
            "pictures": minijinja.Markup("\n".join(pictures)),
            "columns": columns,
            "rows": minijinja.Markup("\n".join(rows)),
            "row_count": len(rows),
            "in_file": in_file,
            "left_out": self._left_out,
        }
        return rendered("export.html", **values), self._left_out

    def _of_rows(self, room: _ExportRoom, done: int) -> tuple[list[str], list[str], list[str], list[int]]:
        """What is read from the interviews: pictures, the names of columns, and rows with their ordinals."""
        with Results.open(self._file.path) as results:
            if results.kept == "nothing":
                self._leave_out("interviews: the run file keeps none")
                return [], [], [], []
        pictures = self._pictures(room)
        with TableQuery().view(self._file) as view:
            catalog = view.catalog()
            varying = overview_columns(view.file.reader, view.file.header, catalog)
            chosen = _as_list([catalog.shown(column) for column in varying])
        return pictures, *self._rows(chosen, room, done)

    def _always(self) -> dict[str, Any]:
        """The parts that the exported file always has, whatever size it may have."""
        style = "\n".join([*map(_style_sheet, _STYLE_SHEETS), _PICTURE_STYLE])
        run: RunSummary = RUN_SUMMARY.call(self._files, OneRun(self._file.id))
        found = FAILURE_GROUPS.call(self._files, FailuresAsked(run.id, text=True))
        if found.truncated or len(found.groups) > _MOST_GROUPS:
            self._leave_out("failures beyond those that are counted here")
        return {
            "run": run,
            "found": msgspec.structs.replace(found, groups=found.groups[:_MOST_GROUPS]),
            "money": RUN_MONEY.call(self._files, OneRun(self._file.id)),
            "memory": self._memory(),
            "style": minijinja.Markup(style),
            "style_hash": b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            "written_at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "pictures": "",
            "columns": [],
            "rows": "",
            "row_count": 0,
            "in_file": [each.ordinal for group in found.groups for each in group.examples],  # as long as it may be
            "left_out": [],
        }

    def _memory(self) -> str:
        with Results.open(self._file.path) as results:
            return svg(results.plot_memory().svg()) if results.memory_history() else ""

    def _pictures(self, room: _ExportRoom) -> list[str]:
        """Of the questions in their order, as many as have room."""
        with TableQuery().view(self._file) as view:
            header = view.file.header
        total = len(header.question_names)
        pictures: list[str] = []  # what has room
        for number in range(total):
            question = shown_question(header, number)
            try:
                picture = rendered("export_picture.html", question=question, drawn=self._drawn(question.name))
            except HeadraceError as error:
                reason = cell_text(error.message, _LONGEST_REASON)
                self._leave_out(f"the picture of {cell_text(question.name, 60)}: {reason}")
                continue
            if not room.take(picture):
                self._leave_out(f"pictures of {counted(total - number, 'question')}")
                break
            pictures.append(picture)
        return pictures

    def _drawn(self, name: str) -> minijinja.Markup:
        asked = [AskedPicture(f"answer.{name}", None, "")]
        (found,) = self._files.counts.look(self._file.path, asked, _COUNT_WITHIN_S)
        return svg(bar_svg(kept_chart(found.kept, name, None, "").chart, width=_PICTURE_PX))

    def _rows(self, chosen: str, room: _ExportRoom, done: int) -> tuple[list[str], list[str], list[int]]:
        """The names of columns, and the first interviews as rows of HTML, as many as have room, with their ordinals."""
        page = self._rows_behind(chosen, "")
        rows: dict[int, str] = {}  # at most as many as have room
        if room.take(rendered("export_head.html", columns=page.columns)):
            rows = dict(islice(self._fitting(page, chosen, room), _MOST_ROWS))
        if len(rows) < done:
            self._leave_out(f"{done - len(rows):,} of {counted(done, 'interview')} in the table")
        if self._is_cut:
            self._leave_out(f"what texts in the table have beyond {_LETTERS} letters")
        return page.columns, list(rows.values()), list(rows)

    def _fitting(self, page: RowsPage, chosen: str, room: _ExportRoom) -> Iterator[tuple[int, str]]:
        while True:
            for row in page.rows:
                text = rendered("export_row.html", row=row, cells=shown_cells(row, page.columns))
                if not room.take(text):
                    return
                self._is_cut |= row.truncated
                yield row.ordinal, text
            if page.next is None:
                return
            page = self._rows_behind(chosen, page.next)

    def _rows_behind(self, chosen: str, cursor: str) -> RowsPage:
        run, limit = self._file.id, _ROWS_AT_ONCE
        asked = RowsAsked(run, columns=chosen, cursor=cursor, limit=limit, letters=_LETTERS, text=True)
        return RUN_ROWS.call(self._files, asked)

    def _leave_out(self, what: str) -> None:
        if len(self._left_out) < _MOST_NOTES:
            self._left_out.append(what)
        else:
            self._left_out[-1] = "and more"


def _as_list(names: list[str]) -> str:
    """Names with commas between, as a request has them."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="").writerow(names)
    return line.getvalue()


def _style_sheet(name: str) -> str:
    found = asset(name)
    assert found is not None
    return found[0].decode()
