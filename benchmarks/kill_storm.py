"""Storms of kills: a scenario is done in a fork of this process, killed at a chosen moment, and checked in another.

Covers: which moments there are, and running several storms side by side, since most of their time is waiting for the
disk. Does not cover: what a moment is (children.kill_points), what is done (children.kill_scenarios).
"""

import json
import os
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.children.kill_points import KillPoints
from benchmarks.children.kill_scenarios import SCENARIOS, Scenario

_SIDE_BY_SIDE = 4
_END_WITHIN_S = 120
_SOCKETS = shutil.ignore_patterns("*.sock")  # no copy of one leads anywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill of a storm; `trouble` is the traceback of a check that failed, and empty where all is well."""

    scenario: str
    moment: int
    trouble: str


def prepared(name: str, place: Path) -> list[str]:
    """Do a scenario once without a kill: every moment at which it can be killed, in order. The directory as it was
    before is kept under `place`, for `storm`.
    """
    scenario, before, trouble = SCENARIOS[name], place / "before", place / "trouble"
    before.mkdir(parents=True)
    _waited_for(_forked(lambda: scenario.prepare(before), trouble), "prepare", trouble)
    shutil.copytree(before, place / "files", ignore=_SOCKETS)

    def count() -> None:
        points = KillPoints(None)
        scenario.work(place / "files")
        (place / "moments").write_text(json.dumps(points.moments), "utf-8")

    _waited_for(_forked(count, trouble), "work", trouble)
    return json.loads((place / "moments").read_text("utf-8"))


def storm(chosen: Iterable[tuple[str, int]], places: dict[str, Path]) -> Iterator[Kill]:
    """Kill each of these scenarios at its moment and check what is left; in the order in which they end. `places` are
    where each scenario was `prepared`.
    """
    running: dict[int, tuple[str, int, Path]] = {}
    for number, (name, moment) in enumerate(chosen):
        if len(running) >= _SIDE_BY_SIDE:
            yield _ended(running)
        place = places[name] / f"kill-{number}"
        shutil.copytree(places[name] / "before", place / "files", ignore=_SOCKETS)
        pid = _forked(lambda name=name, moment=moment, place=place: _one(name, moment, place), place / "trouble")
        running[pid] = (name, moment, place)
    while running:
        yield _ended(running)


def _ended(running: dict[int, tuple[str, int, Path]]) -> Kill:
    while True:
        for pid in list(running):
            ended, _ = os.waitpid(pid, os.WNOHANG)
            if ended:
                return _told(*running.pop(pid))
        time.sleep(0.002)


def _told(name: str, moment: int, place: Path) -> Kill:
    told = place / "trouble"
    trouble = told.read_text("utf-8") if told.exists() else ""
    if not trouble:
        shutil.rmtree(place)
    return Kill(scenario=name, moment=moment, trouble=trouble)


def _one(name: str, moment: int, place: Path) -> None:
    scenario, files, trouble = SCENARIOS[name], place / "files", place / "trouble"
    killed = _forked(lambda: _killed(scenario, moment, files), trouble)
    status = os.waitstatus_to_exitcode(os.waitpid(killed, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the scenario itself ended with {status}"
    _waited_for(_forked(lambda: scenario.check(files), trouble), "check", trouble)


def _killed(scenario: Scenario, moment: int, files: Path) -> None:
    KillPoints(moment)
    scenario.work(files)


def _waited_for(pid: int, what: str, trouble: Path) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    told = trouble.read_text("utf-8") if trouble.exists() else ""
    assert status == 0, f"{what} ended with {status}: {told}"


def _forked(work: Callable[[], object], trouble: Path) -> int:
    """The id of a fork that does this work and ends; what went wrong is appended to `trouble`."""
    with warnings.catch_warnings():
        # The one thread that a test runner has beside this one holds nothing that the fork uses.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.alarm(_END_WITHIN_S)
        os.environ["HEADRACE_HOME"] = str(trouble.parent / "home")
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - a fork must not come back, whatever happens
        with trouble.open("a", encoding="utf-8") as file:
            traceback.print_exc(file=file)
    finally:
        sys.stdout.flush()
        os._exit(code)
