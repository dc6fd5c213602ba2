"""What the library logs, as lines of the command on standard error: also where that is a pipe, and nobody watches."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress

from headrace.display import visible


class LogHandler(logging.Handler):
    """Writes to whatever standard error is at that moment: above a progress line where one is drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # it was closed: the run goes on
            print(f"headrace: {visible(record.getMessage())}", file=sys.stderr, flush=True)


def show_log_lines() -> None:
    logger = logging.getLogger("headrace")
    if not any(isinstance(handler, LogHandler) for handler in logger.handlers):
        logger.addHandler(LogHandler(logging.INFO))
        logger.setLevel(logging.INFO)
