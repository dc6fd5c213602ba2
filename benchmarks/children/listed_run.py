"""Asks one question about each row of a file: `listed_run FILE RUN`; or reads it alone: `listed_run FILE`.

Prints the CPU of both passes over the file; and when the first result came, after the list was made and after its last
row was read into the run file.
"""

import resource
import sys
import time
from collections.abc import Iterator

import headrace
from benchmarks.processes import loop_ms, print_figures


def main(path: str, run_file: str | None) -> None:
    began = time.process_time()
    rows = headrace.ScenarioList.from_file(path)
    length, opened_s = len(rows), time.process_time() - began
    if run_file is None:
        assert sum(1 for _ in rows.source.rows()) == length
        assert rows.digest
        print_figures(rows=length, opened_s=opened_s, read_s=time.process_time() - began, loop_ms=loop_ms())
        return
    question = headrace.QuestionFreeText(question_name="q", question_text="What of {{ scenario.c2 }}?")
    job = question.by(rows).by(headrace.Model("test", canned_response="Fine."))
    read_at, first_at = _noting_the_end(rows), list[float]()
    made_at = time.monotonic()
    results = job.run(run_file, cache=False, on_result=lambda _: first_at or first_at.append(time.monotonic()))
    took_s = time.monotonic() - made_at
    assert len(results) == length
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print_figures(
        rows=length,
        first_after_made_s=first_at[0] - made_at,
        first_after_read_s=first_at[0] - read_at[-1],
        took_s=took_s,
        peak_bytes=peak_bytes,
        loop_ms=loop_ms(),
    )


def _noting_the_end(rows: headrace.ScenarioList) -> list[float]:
    """When each pass over the rows, from now on, came to its end."""
    ends, read = list[float](), rows.source.rows

    def noted(first: int = 0) -> Iterator[bytes]:
        yield from read(first)
        ends.append(time.monotonic())

    rows.source.rows = noted  # type: ignore[method-assign]
    return ends


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
