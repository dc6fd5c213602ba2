"""The page's memory over an hour of clicking by a script, beside a run that goes on: it must stay flat.

`HEADRACE_BENCH_MINUTES` sets another time, and `HEADRACE_BENCH_RUN` a run file of `million` that is there already.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote_plus

from benchmarks.bench import Bench
from benchmarks.page import MOST_RSS, any_page
from benchmarks.page_client import PageProcess
from benchmarks.processes import run_python, start_python
from benchmarks.report import Line, Table, megabytes

_MINUTES, _RUN = "HEADRACE_BENCH_MINUTES", "HEADRACE_BENCH_RUN"
_CLICK_EVERY_S = 0.25
_LOOK_EVERY_S = 300.0
_SORTS = ("agent.age", "-answer.rating", "answer.mood")
_SURVEY = "questions:\n  - {kind: free_text, name: q, text: 'Well?'}\n"
_LIVE = "live.run"
_PATIENCE_S = 60.0


def measure(bench: Bench) -> Table:
    minutes = float(os.environ.get(_MINUTES, bench.sizes.page_click_minutes))
    size, path = bench.sizes.page_run, bench.directory / f"results-{bench.sizes.page_run}.run"
    if given := os.environ.get(_RUN):
        path = Path(given)
    elif not path.exists():
        run_python("-m", "benchmarks.million", path, "--size", size)
    place = bench.directory / "clicks"
    place.mkdir()
    (place / "shown.run").hardlink_to(path)
    with _live_run(place), PageProcess(place) as page:
        files = {file["name"]: file for file in page.api("/runs")["files"]}
        page.run, done = files["shown.run"]["id"], files["shown.run"]["done"]
        return Table(
            f"page_clicks: {done:,} interviews, {minutes:g} minutes of clicks, a run going on beside",
            list(_clicked(page, files[_LIVE]["id"], done, minutes * 60)),
            [f"four clicks a second, on pages of every kind; {_MINUTES} sets other minutes"],
        )


@contextmanager
def _live_run(place: Path) -> Iterator[None]:
    """While the block runs, so does a run of its own in this directory."""
    (place / "s.yaml").write_text(_SURVEY)
    words = ("run", place / "s.yaml", "--model", "test,latency_s=0.2", "--n", 10_000_000, "--concurrency", 10)
    run = start_python("-m", "headrace", *words, "-o", place / _LIVE)
    try:
        give_up_at = time.monotonic() + _PATIENCE_S
        while not (place / _LIVE).exists() and time.monotonic() < give_up_at:
            time.sleep(0.1)
        yield
    finally:
        run.kill()
        run.communicate()


def _clicked(page: PageProcess, live: str, size: int, for_s: float) -> Iterator[Line]:
    began_s = time.monotonic()
    held: list[tuple[float, int]] = []
    pages, due_s = _pages(page, live, size), 0.0
    for number in count():
        past_s = time.monotonic() - began_s
        held.append((past_s, page.resident_bytes))
        if past_s >= due_s or past_s >= for_s:
            yield Line(f"server after {past_s / 60:.1f} minutes, {number:,} clicks", megabytes(held[-1][1]))
            due_s += _LOOK_EVERY_S
        if past_s >= for_s:
            break
        page.timed(next(pages))
        time.sleep(max(0.0, (number + 1) * _CLICK_EVERY_S - (time.monotonic() - began_s)))
    early = max(held_bytes for past_s, held_bytes in held if past_s < for_s / 2)
    late = max(held_bytes for past_s, held_bytes in held if past_s >= for_s / 2)
    yield Line("the most it held", megabytes(max(early, late)), f"<= {megabytes(MOST_RSS)}", late <= MOST_RSS)
    grown = late - early
    yield Line("grown in the second half", megabytes(grown), "flat: <= 2.0 MB", grown <= 2e6)


def _pages(page: PageProcess, live: str, size: int) -> Iterator[str]:
    clicked = any_page(page, size)
    for number in count():
        yield next(clicked)
        if number % 4 == 0:
            sort = _SORTS[number // 4 % len(_SORTS)]
            yield from ("/", f"/runs/{live}", f"/runs/{page.run}/table?sort={quote_plus(sort)}", "/metrics")
