"""The page: how long a browser waits on a run file of a million interviews with 5 KB each, what the server holds, and
what it costs a run that goes on.

The file is that of `million`: three questions and five traits. Five pictures are its three questions, and two of them
split by a trait.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from html import unescape
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import median
from urllib.parse import quote_plus

from benchmarks import million
from benchmarks.bench import Bench
from benchmarks.page_client import PageBrowser, PageProcess
from benchmarks.processes import run_child, run_python
from benchmarks.report import NOT_MEASURED, Line, Table, megabytes

_LIVE_PAGES = 50
_STALLED = 10
_PICTURES = (("mood", ""), ("rating", ""), ("story", ""), ("mood", "agent.city"), ("rating", "agent.work"))
_PICTURE = "/runs/{run}/questions/{question}?by={by}"
MOST_RSS = 70e6
_PATIENCE_S = 120.0


def measure(bench: Bench) -> Table:
    size = bench.sizes.page_run
    path = bench.directory / f"results-{size}.run"
    if not path.exists():
        run_python("-m", "benchmarks.million", path, "--size", size)
    with PageProcess(path) as page:
        lines = [*_loads(page, size), *_pictures(page), *_clicks(page, size, bench.sizes.page_clicks)]
        lines += _stalled_readers(page)
    lines += _live_pages(bench)
    return Table(
        f"page: {size:,} interviews of three questions and five traits, 5 KB of prompts and responses each",
        lines,
        [
            f"made by benchmarks/million.py with seed {million.SEED}; targets are for a million",
            (
                "loads are wall time from the click to the end of loading in Chromium, by its own clock: the middle one"
                " and the longest; without Chromium, until the last byte"
            ),
            "memory is the server's resident memory; a click is a page of any kind",
            (
                "live pages read all that is sent to them; the run's cost is its own CPU for each interview, in turn"
                " with and without, the smallest of each"
            ),
        ],
    )


# --- how long a browser waits


def _loads(page: PageProcess, size: int) -> Iterator[Line]:
    draw = Random(1)
    run = f"/runs/{page.run}"
    with page.browser() as browser:
        wait = _waiting(page, browser)
        table = f"{run}/table"
        yield _load(page, wait, "first page of the table", [table] * 10, 200)
        yield _load(page, wait, "further pages of the table", list(islice(_next_pages(page, table), 20)), 200)
        far = f"{table}?filter={quote_plus(f'interview.ordinal >= {size * 9 // 10}')}"
        yield _load(page, wait, "pages at nine tenths of the file", list(islice(_next_pages(page, far), 10)), 200)
        by_age = f"{table}?sort=agent.age"
        yield _load(page, wait, "further pages of a sorted table", list(islice(_next_pages(page, by_age), 20)), 200)
        interviews = [f"{run}/interviews/{draw.randrange(size)}" for _ in range(30)]
        yield _load(page, wait, "an interview", interviews, 100)
        traits = [f"agent.city == '{city}'" for city in million.CITIES]
        filtered = [f"{table}?filter={quote_plus(trait)}" for trait in traits]
        yield _load(page, wait, "first 50 of a filter by a trait", filtered, 500)


def _waiting(page: PageProcess, browser: PageBrowser | None) -> Callable[[str], float]:
    return (lambda path: page.timed(path)[0]) if browser is None else browser.load_ms


def _next_pages(page: PageProcess, path: str) -> Iterator[str]:
    """The addresses that "Next" leads to, one after the other."""
    while found := re.search(r'rel="next" href="([^"]+)"', page.timed(path)[1]):
        path = unescape(found[1])
        yield path


def _load(page: PageProcess, wait: Callable[[str], float], name: str, paths: list[str], most_ms: float) -> Line:
    if not paths:
        return Line(name, NOT_MEASURED, f"<= {most_ms:g} ms")
    before_s = page.cpu_s
    times_ms = list(map(wait, paths))
    cpu_ms = (page.cpu_s - before_s) / len(paths) * 1000
    middle, longest = median(times_ms), max(times_ms)
    measured = f"{middle:.0f}, {longest:.0f} ms; server's CPU {cpu_ms:.0f} ms"
    return Line(name, measured, f"<= {most_ms:g} ms", longest <= most_ms)


def _pictures(page: PageProcess) -> Iterator[Line]:
    if not page.has(f"/runs/{page.run}/questions"):
        yield Line("five pictures", NOT_MEASURED)
        return
    began_s = time.perf_counter()
    first_s = complete_s = None
    while complete_s is None and time.perf_counter() - began_s < _PATIENCE_S:
        found = [_picture(page, *each) for each in _PICTURES]
        past_s = time.perf_counter() - began_s
        first_s = past_s if first_s is None else first_s
        complete_s = past_s if all(each["complete"] for each in found) else None
    began_s = time.perf_counter()
    for each in _PICTURES:
        _picture(page, *each)
    warm_s = time.perf_counter() - began_s
    yield _seconds("five pictures, first bars of all", first_s, 1.0)
    yield _seconds("five pictures, complete", complete_s, 5.0)
    yield _seconds("five pictures, warm", warm_s, 0.2)


def _picture(page: PageProcess, question: str, by: str) -> dict[str, object]:
    return page.api(_PICTURE.format(run=page.run, question=question, by=by))


def _seconds(name: str, seconds: float | None, most_s: float) -> Line:
    target = f"<= {most_s * 1000:.0f} ms"
    if seconds is None:
        return Line(name, f"not within {_PATIENCE_S:g} s", target, False)
    return Line(name, f"{seconds * 1000:.0f} ms", target, seconds <= most_s)


# --- what the server holds


def _clicks(page: PageProcess, size: int, clicks: int) -> Iterator[Line]:
    held = [page.resident_bytes]
    for number, path in enumerate(islice(any_page(page, size), clicks)):
        page.timed(path)
        if number % 20 == 0:
            held.append(page.resident_bytes)
    early, late = max(held[: len(held) // 2]), max(held[len(held) // 2 :])
    name = f"server after {clicks:,} clicks"
    yield Line(name, megabytes(late), f"<= {megabytes(MOST_RSS)}", late <= MOST_RSS)
    grown = late - early
    yield Line("grown in their second half", megabytes(grown), "flat: <= 2.0 MB", grown <= 2e6)


def any_page(page: PageProcess, size: int) -> Iterator[str]:
    draw = Random(2)
    run = f"/runs/{page.run}"
    for place in cycle(("", "/table", "/interviews", "/failures", "/questions", "/filter")):
        if place == "/interviews":
            yield f"{run}/interviews/{draw.randrange(size)}"
        elif place == "/filter":
            condition = f"agent.city == '{draw.choice(million.CITIES)}' and interview.ordinal >= {draw.randrange(size)}"
            yield f"{run}/table?filter={quote_plus(condition)}"
        else:
            yield run + place


def _stalled_readers(page: PageProcess) -> Iterator[Line]:
    """Downloads and pages that are asked for and not read."""
    before = page.resident_bytes
    paths = [f"/runs/{page.run}/download.{kind}" for kind in ("csv", "jsonl")] + [f"/runs/{page.run}/table"]
    stalled = [page.asked(path, 4_096) for path in islice(cycle(paths), _STALLED)]
    highest = before
    for _ in range(50):
        time.sleep(0.1)
        highest = max(highest, page.resident_bytes)
    answered_ms, _ = page.timed(f"/runs/{page.run}")
    for each in stalled:
        each.close()
    name = f"server with {_STALLED} readers that stopped reading"
    yield Line(name, megabytes(highest), f"<= {megabytes(MOST_RSS)}", highest <= MOST_RSS)
    yield Line("another page beside them", f"{answered_ms:.0f} ms", "<= 500 ms", answered_ms <= 500)


# --- what it costs a run


def _live_pages(bench: Bench) -> Iterator[Line]:
    size = bench.sizes.live_run
    alone: list[float] = []
    followed: list[float] = []
    largest_log = 0
    for number in range(bench.sizes.live_repeats):
        alone.append(_cpu_us(bench.directory / f"alone-{number}.run", size))
        cpu_us, log_bytes = _cpu_us_followed(bench.directory / f"followed-{number}.run", size)
        followed.append(cpu_us)
        largest_log = max(largest_log, log_bytes)
    cost = min(followed) / min(alone) - 1
    name = f"{_LIVE_PAGES} live pages: the run's CPU for an interview"
    yield Line(name, f"{min(followed):.1f} us, {cost:+.1%}", "< 2 % more", cost < 0.02, f"alone {min(alone):.1f} us")
    yield Line("the run's log beside stopped readers", megabytes(largest_log), "<= 70.0 MB", largest_log <= 70e6)


def _cpu_us(path: Path, size: int) -> float:
    return run_child("whole_run", path, size).cpu_s / size * 1e6


def _cpu_us_followed(path: Path, size: int) -> tuple[float, int]:
    """The CPU of a run with live pages on it and readers that stopped, and the largest its log became."""
    ended: list[float] = []
    running = threading.Thread(target=lambda: ended.append(_cpu_us(path, size)))
    running.start()
    _until(lambda: path.exists() and path.stat().st_size > 0)
    log, largest = path.with_name(path.name + "-wal"), 0
    with PageProcess(path) as page, page.followed(_LIVE_PAGES):
        stalled = [page.asked(f"/runs/{page.run}/download.csv", 4_096) for _ in range(3)]
        while running.is_alive():
            largest = max(largest, log.stat().st_size if log.exists() else 0)
            time.sleep(0.05)
        for each in stalled:
            each.close()
    return ended[0], largest


def _until(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while not is_so() and time.monotonic() < give_up_at:
        time.sleep(0.01)
