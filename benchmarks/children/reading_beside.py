"""Reads a run file again and again while another process writes it: `reading_beside PATH INTERVIEWS`.

Prints the reader's memory and what it saw: a count that never falls, each view complete for its moment.
"""

import sys
import time
from pathlib import Path

from benchmarks.processes import peak_resident_bytes, print_figures, start_python
from headrace import Results

_SEEN_PER_ROUND = 20_000
_WAITS_S = 60.0


def look(results: Results) -> int:
    """One round of everything a reader does; return how many interviews there were at its end."""
    count = len(results)
    rated = results.group_by("answer.mood").agg(n="count()").to_dicts()
    assert sum(row["n"] for row in rated) >= count
    assert all(result.answer for result in results[max(0, count - 100) : count])
    seen = sum(1 for _ in results[max(0, count - _SEEN_PER_ROUND) : count])
    assert seen == min(count, _SEEN_PER_ROUND)
    assert len(results.filter("answer.rating > 3").head(50).to_dicts()) <= 50
    return len(results)


def main(path: str, interviews: int) -> None:
    writer = start_python("-m", "benchmarks.children.whole_run", path, interviews)
    began_s, rounds, seen = time.monotonic(), 0, 0
    while not Path(path).exists() and time.monotonic() - began_s < _WAITS_S:
        time.sleep(0.01)
    with Results.open(Path(path)) as results:
        while writer.poll() is None or seen < interviews:
            now = look(results)
            assert now >= seen
            rounds, seen = rounds + 1, now
            time.sleep(0.05)
            assert writer.poll() in (None, 0)
    assert writer.wait() == 0
    print_figures(rounds=rounds, seen=seen, peak_bytes=peak_resident_bytes(), seconds=time.monotonic() - began_s)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
