"""Writes results one by one, each in a commit of its own, as a run of one result a second does: `trickle PATH SIZE`."""

import sys
from pathlib import Path

from benchmarks import million
from benchmarks.processes import bytes_written, print_figures


def main(path: str, size: int) -> None:
    million.write(Path(path), size, rows_a_commit=1)
    written, handed = bytes_written()
    print_figures(written_bytes=written or handed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
