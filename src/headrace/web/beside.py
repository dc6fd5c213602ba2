"""The page beside a program's runs: `job.run(..., view=True)`. Covers: detaching, the runs it is told, its end.

    program ──path, a line──► standard input      standard output ──address, a line──► program

It ends when its standard input does. Does not cover: who starts it (progress.page_beside), or what it answers
(web.page_server).
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    # Detached, before anything large is loaded: as the program's child, its memory would count as the run's.
    if os.fork():
        os._exit(0)
    from headrace.web.serving import serve_beside

    serve_beside(sys.stdin, sys.stdout)
