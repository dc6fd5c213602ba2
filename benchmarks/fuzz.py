"""Mutated files: each opens right or is refused in our words, in time and memory, with nothing executed or written.

Each mutant is opened, read, summed, shown, run and verified in a process of its own, two at a time. Right is: the rows
and prompts are those of the file before it was changed (a file of the first version has no checksums, and is not held
to that), what a run adds is what it would have added then, what was refused is found by `verify`, and reading leaves
every byte of the file as it was.
"""

import asyncio
import importlib
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from benchmarks.bench import Bench
from benchmarks.fuzz_bases import MOST_ASKED, NEW, bases
from benchmarks.mutants import mutate
from benchmarks.report import Line, Table

if TYPE_CHECKING:
    from headrace import Results

MOST_S, MOST_BYTES = 2.0, 200_000_000
Rows: TypeAlias = list[object]
_GIVE_UP_S = 20.0
_AT_ONCE = 2
_MOST_PROMPTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What a file gives before it is changed: its rows, the prompts of its job, and its rows once it was run."""

    rows: Rows
    prompts: Rows
    after_run: Rows

    @classmethod
    def of(cls, base: Path, folder: Path) -> "Right":
        _forget_texts()
        rows, prompts = _rows(base), _prompts(base)
        copy = Path(shutil.copy(base, folder / "right.run"))
        _run(copy)
        after_run = _rows(copy)
        copy.unlink()
        return cls(rows=rows, prompts=prompts, after_run=after_run)


class Row(NamedTuple):
    """What is compared of an interview."""

    ordinal: int
    status: str
    answer: object
    agent: object
    scenario: object
    model: str
    system_prompt: str
    prompts: object


@dataclass
class Outcome:
    """What became of one mutant. `faults` are what must never happen."""

    seed: int
    kind: str
    refused: int = 0
    seconds: float = 0.0
    bytes: int = 0
    faults: list[str] = field(default_factory=list)


def _import_all() -> None:
    """Import what the ways use, so that each forked process need not: that took most of the time."""
    import headrace

    for module in pkgutil.walk_packages(headrace.__path__, "headrace."):
        with suppress(ImportError):  # of an extra that is not installed
            importlib.import_module(module.name)


def play(seeds: Iterator[int], files: list[Path], folder: Path) -> Iterator[Outcome]:
    """The outcome of each seed's mutant, as they end."""
    running: dict[int, tuple[int, float, Path, bytearray]] = {}  # by the pipe's descriptor
    right = {base: Right.of(base, folder) for base in files if base.name.startswith(NEW)}
    left = iter(seeds)
    is_over = False
    while running or not is_over:
        while not is_over and len(running) < _AT_ONCE:
            seed = next(left, None)
            if seed is None:
                is_over = True
                break
            base = files[seed % len(files)]
            reading, pid, place = _start(seed, base, right.get(base), folder)
            running[reading] = (pid, time.monotonic(), place, bytearray())
        yield from _collected(running)


def _start(seed: int, base: Path, right: Right | None, folder: Path) -> tuple[int, int, Path]:
    place = folder / f"mutant-{seed}"
    place.mkdir()
    path = Path(shutil.copy(base, place / "x.run"))
    kind = f"{mutate(path, seed)} of {base.name}"
    for beside in place.iterdir():
        if beside != path:
            beside.unlink()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.write(writing, json.dumps(vars(_exercise(seed, kind, path, right))).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return reading, pid, place


def _collected(running: dict[int, tuple[int, float, Path, bytearray]]) -> Iterator[Outcome]:
    for reading in select.select(list(running), [], [], 0.5)[0]:
        content = running[reading][-1]
        piece = os.read(reading, 65_536)
        content += piece
        if not piece:
            yield _ended(running, reading, "" if content else "it died without a word")
    for reading, (pid, started_s, _, _) in list(running.items()):
        if time.monotonic() - started_s > _GIVE_UP_S:
            os.kill(pid, signal.SIGKILL)
            yield _ended(running, reading, f"it took more than {_GIVE_UP_S} s")


def _ended(running: dict[int, tuple[int, float, Path, bytearray]], reading: int, fault: str) -> Outcome:
    pid, _, place, content = running.pop(reading)
    os.close(reading)
    os.waitpid(pid, 0)
    shutil.rmtree(place)
    if fault:
        return Outcome(int(place.name.rpartition("-")[2]), "?", faults=[fault])
    return Outcome(**json.loads(content))


def _exercise(seed: int, kind: str, path: Path, right: Right | None) -> Outcome:
    outcome = Outcome(seed, kind)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    os.environ["HEADRACE_HOME"] = str(path.parent / "home")
    _forget_texts()
    content = path.read_bytes()
    answers = {name: _tried(name, way, outcome) for name, way in _readings(path)}
    if path.read_bytes() != content:
        outcome.faults.append("reading changed the file")
    if right is not None:
        outcome.faults += _wrong(answers, right)
    written = {name: _tried(name, way, outcome) for name, way in _writings(path)}
    if right is not None and not isinstance(written["run"], BaseException):
        outcome.faults += _wrongly_added(_tried("after", lambda: _rows(path), outcome), right)
    outcome.bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if outcome.bytes > MOST_BYTES:
        outcome.faults.append(f"took {outcome.bytes / 1e6:.0f} MB")
    strays = [
        beside.name for beside in path.parent.iterdir() if not beside.name.startswith("x.") and beside.name != "home"
    ]
    outcome.faults += [f"wrote {name}" for name in strays]
    return outcome


def _tried(name: str, way: Callable[[], object], outcome: Outcome) -> object:
    """What it gave; an error of ours where it was refused."""
    from headrace.errors import HeadraceError, Interrupted, RunFileError

    started_s = time.process_time()
    try:
        return way()
    except (HeadraceError, Interrupted) as error:
        # Not because a file keeps no rows, or is no engine's.
        outcome.refused += name != "engine" and isinstance(error, RunFileError)
        return error
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        outcome.faults.append(f"{name}: {traceback.format_exc(limit=-4)}")
        return error
    finally:
        took_s = time.process_time() - started_s
        outcome.seconds = max(outcome.seconds, took_s)
        if took_s > MOST_S:
            outcome.faults.append(f"{name}: took {took_s:.1f} s")


def _wrong(answers: dict[str, object], right: Right) -> list[str]:
    """What was read without a word and is not what the file had, or was refused and not found by `verify`."""
    from headrace.store.verification import Verification

    read, prompts, found = answers["read"], answers["prompts"], answers["verify"]
    faults = ["read: other rows than it had, without a word"] if isinstance(read, list) and read != right.rows else []
    if isinstance(prompts, list) and prompts != right.prompts:
        faults.append("prompts: others than it had, without a word")
    is_missed = isinstance(found, Verification) and not found.findings
    if is_missed and isinstance(read, BaseException):
        faults.append(f"verify: found nothing, where reading says {read}")
    return faults


def _wrongly_added(after: object, right: Right) -> list[str]:
    """What a run has added that it would not have added before. It goes on beside damaged rows, so that reading may
    still be refused; a file that it embeds may be lost, which costs interviews their answers. None may have another.
    """
    rows = cast("Rows", after) if isinstance(after, list) else []
    wrong = [row for row in rows if _is_answered(row) and row not in right.after_run]
    return [f"run: added {str(wrong[0])[:300]}"] if wrong else []


def _is_answered(row: object) -> bool:
    return not isinstance(row, Row) or row.status == "done"


def _rows(path: Path) -> Rows:
    """The rows of a file; its totals where it keeps no rows."""
    from headrace import Results

    results = Results.open(path)
    if results.kept == "nothing":
        return [*results.aggregate().to_dicts(), len(results)]
    return [
        Row(r.ordinal, r.status, r.answer, dict(r.agent), dict(r.scenario), r.model.name, r.system_prompt, r.prompts)
        for r in results
    ]


def _prompts(path: Path) -> Rows:
    """The first prompts of the job in a file, as its next run would write them."""
    from headrace import Job

    return list(islice(Job.open(path).prompts(), _MOST_PROMPTS))


def _forget_texts() -> None:
    """The texts of files that this process has read: what a file embeds must be read from there."""
    from headrace.survey.files import file_text

    file_text._kept = file_text._KeptTexts()  # pyright: ignore[reportPrivateUsage]


def _run(path: Path) -> None:
    from headrace import Job

    Job.open(path).run(path, retry_failed=True, memory="+200MB", limit=MOST_ASKED).close()


def _readings(path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything that is read of a file."""
    from headrace import Results
    from headrace.cli.status.run_status import show_status
    from headrace.results.totals.totals_table import check_totals
    from headrace.store.whole_files import verify

    def results() -> Results:
        return Results.open(path)

    yield "read", lambda: _rows(path)
    yield "prompts", lambda: _prompts(path)
    yield "details", lambda: [(r.prompts, r.failures, r.times) for r in results()]
    yield "export", lambda: results().to_dicts()
    yield "filter", lambda: results().filter("interview.ordinal > 1 and iteration.iteration == 0").to_dicts()
    yield "sort", lambda: results().sort_by("model.model", "interview.ordinal").to_dicts()
    yield "tally", lambda: results().tally("model.model", "interview.status").to_dicts()
    yield "groups", lambda: _groups(results())
    yield "sql", lambda: results().sql("select count(*), * from self").to_dicts()
    yield (
        "computed",
        lambda: results().mutate("twice = interview.ordinal * 2").sql("select sum(twice) from self").first(),
    )
    yield "comments", lambda: _comments(results())
    yield "several", lambda: (results() + results()).sort_by("interview.ordinal").sql("select * from self").to_dicts()
    yield "csv", lambda: results().select("*", "*_cost").to_csv(path.with_name("x.csv"))
    yield "sqlite", lambda: results().to_sqlite(path.with_name("x.sqlite"))
    yield "plot", lambda: _pictures(results())
    yield "failed", lambda: list(results().failed())
    yield "stats", lambda: (len(results()), results().stats(), repr(results()), results()[:3])
    yield "history", lambda: results().memory_history()
    yield "status", lambda: show_status(path, as_json=True)
    yield "verify", lambda: verify(path, check_totals)


def _writings(path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What may write to a file that it finds in order."""
    yield "engine", lambda: asyncio.run(_open_engine(path))
    yield "run", lambda: _run(path)


def _comments(results: "Results") -> None:
    """Reads a column out of the detail, by SQL and by a filter that Python evaluates."""
    name = f"{results.question_names[0]}_comment"
    quoted = name.replace('"', '""')
    results.sql(f'select "{quoted}", count(*) from self group by 1').to_dicts()
    results.select(name, "interview.ordinal").filter("len(interview.status) > 3").tally().to_dicts()


def _pictures(results: "Results") -> None:
    """A picture of each answer, split by another column, and of the memory."""
    for name in results.question_names:
        plot = results.plot(f"answer.{name}", by="interview.status")
        plot.svg(), plot.text(80)
    results.plot_memory().svg()


def _groups(results: "Results") -> None:
    answer = f"answer.{results.question_names[0]}"
    results.group_by("model.model").agg(n="count()", known=f"count({answer})").to_dicts()
    results.distinct(answer, "interview.status").to_dicts()


async def _open_engine(path: Path) -> None:
    from headrace import Engine

    async with Engine(path, isolation="inline") as engine:
        engine.status()
        await asyncio.sleep(0.02)


def measure(bench: Bench) -> Table:
    count = 10_000 if bench.sizes.slow_peers else 300
    first = int(os.environ.get("FUZZ_SEED", "0"))
    folder = bench.directory / "fuzz"
    folder.mkdir()
    _import_all()
    started_s, outcomes = time.monotonic(), Counter[str]()
    slowest, largest, faulty = 0.0, 0, 0
    for outcome in play(iter(range(first, first + count)), bases(folder), folder):
        outcomes["refused" if outcome.refused else "as if unchanged"] += 1
        slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.bytes)
        faulty += bool(outcome.faults)
        for fault in outcome.faults:
            print(f"seed {outcome.seed} ({outcome.kind}): {fault}", file=sys.stderr, flush=True)
    return Table(
        f"fuzz: {count:,} mutated run files and engine files",
        [
            Line("opened right, or refused in our words", f"{count - faulty:,}", f"{count:,}", faulty == 0),
            Line("refused somewhere", f"{outcomes['refused']:,}"),
            Line("longest of one reading or run", f"{slowest:.2f} s", f"<= {MOST_S:.0f} s", slowest <= MOST_S),
            Line("most memory", f"{largest / 1e6:.0f} MB", f"<= {MOST_BYTES / 1e6:.0f} MB", largest <= MOST_BYTES),
        ],
        [f"seeds {first} to {first + count - 1}, in {time.monotonic() - started_s:.0f} s; FUZZ_SEED= begins elsewhere"],
    )
