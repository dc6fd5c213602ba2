"""Reads a file of rows with another library, whole, as that is what it does: `list_peer LIBRARY FILE`."""

import resource
import sys
import time
from typing import Any

from benchmarks.processes import print_figures


def main(library: str, path: str) -> None:
    module: Any = __import__(library)
    began = time.process_time()
    read = module.read_parquet if path.endswith(".parquet") else module.read_csv
    rows = len(read(path))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print_figures(rows=rows, read_s=time.process_time() - began, peak_bytes=peak_bytes)


if __name__ == "__main__":
    main(*sys.argv[1:])
