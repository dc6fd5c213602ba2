"""Tells which heavy libraries `import headrace` loads."""

import sys

import headrace  # noqa: F401 - what it loads is the question
from benchmarks.processes import print_figures

_HEAVY = ("aiohttp", "pandas", "pyarrow", "rich")

if __name__ == "__main__":
    print_figures(heavy=[name for name in _HEAVY if name in sys.modules])
