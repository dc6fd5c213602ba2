"""Standard output as a terminal: its width, colours, and whether lines can be drawn over.

Does not cover: plain lines (cli.terminal), which take no time to load.
"""

from __future__ import annotations

from rich.console import Console

from headrace.display import visible


class Terminal(Console):
    """Standard output: colours only on a terminal and without NO_COLOR, lines as wide as it is."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False)

    @property
    def is_live(self) -> bool:
        """Whether printed lines can be drawn over."""
        return self.file.isatty() and not self.is_dumb_terminal

    @property
    def has_unicode(self) -> bool:
        return self.encoding.startswith("utf")

    def say(self, line: str) -> None:
        """Print a line with control characters escaped. Only the terminal wraps it, so that it can be copied whole."""
        self.print(visible(line), soft_wrap=True)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # cli.error_messages ends quietly; rich would call it a failure
