"""Plot: a picture of results. It was counted when it was made, and draws itself as it is asked to. Does not cover:
counting (distributions), or drawing (charts).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from headrace.charts.bar_svg import bar_svg
from headrace.charts.bar_text import bar_text
from headrace.charts.chart_data import BarChart, MemoryChart
from headrace.charts.memory_svg import memory_svg
from headrace.charts.memory_text import memory_text
from headrace.display import counted
from headrace.errors import OptionError
from headrace.plain_files.replacing import replacing
from headrace.results.export.export_targets import checked_target


class Plot:
    """A picture of a run file's results at one moment. A notebook shows it; `print(plot)` draws it in the terminal."""

    def __init__(self, chart: BarChart | MemoryChart, run_path: Path) -> None:
        self.chart = chart
        self._run_path = run_path

    def svg(self) -> str:
        """The picture as the text of an SVG document."""
        return memory_svg(self.chart) if isinstance(self.chart, MemoryChart) else bar_svg(self.chart)

    def text(self, width: int | None = None, *, unicode: bool | None = None) -> str:
        """The picture in letters: as wide as the terminal, and in ASCII where its encoding has no other letters, unless
        told otherwise.
        """
        width = shutil.get_terminal_size().columns if width is None else width
        if unicode is None:
            unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
        draw = memory_text if isinstance(self.chart, MemoryChart) else bar_text
        return draw(self.chart, width, unicode=unicode)  # pyright: ignore[reportArgumentType]

    def save(self, path: str | Path) -> Path:
        """Write the picture as an SVG file, whole or not at all."""
        path = Path(path).expanduser()
        if path.suffix.lower() != ".svg":
            raise OptionError(
                f"{path} is no name for an SVG file.", fix=f"Write {path.with_suffix('.svg').name}: pictures are SVG."
            )
        with replacing(checked_target(path, self._run_path)) as unfinished:
            unfinished.write_text(self.svg(), "utf-8")
        return path

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        if isinstance(self.chart, MemoryChart):
            return f"Plot({self.chart.title!r}: {counted(len(self.chart.marks), 'point')})"
        return f"Plot({self.chart.title!r}: {counted(len(self.chart.bars), 'bar')})"

    def _repr_svg_(self) -> str:
        return self.svg()
