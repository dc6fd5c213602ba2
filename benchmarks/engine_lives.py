"""The lives of an engine that is killed again and again. Covers: starting, watching, killing, what was durable then.

Does not cover: what must be true of all lives together (benchmarks.killed_engine).
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.process_memory import proportional_bytes, tree_of
from benchmarks.processes import ChildFailed, start_python

LIFE = "HEADRACE_MIX_LIFE"  # in the environment of every process of one life
LOGS = ("steps", "effects", "asked", "decided")
_SAMPLE_EVERY_S = 0.01
_GONE_WITHIN_S = 1.0
_PATIENCE_S = 300.0
_STEPS = "SELECT r.name, s.name FROM steps s JOIN runs r ON r.id = s.run WHERE s.finished_at IS NOT NULL"
_INTERVIEWS = "SELECT ordinal FROM interviews"

Step = tuple[str, str]  # agent and step, as both are named


@dataclass(slots=True)
class Lives:
    """`journaled_in` and `sealed_in` tell in which life something became durable; what never did, or in the last life
    only, is in neither. `back_s` is, for each life that got so far, how long after its start it did something new.
    """

    directory: Path
    kills: int = 0
    whole_trees: int = 0
    journaled_in: dict[Step, int] = field(default_factory=dict[Step, int])
    sealed_in: dict[int, int] = field(default_factory=dict[int, int])  # by the benchmark's own interviews: few enough
    back_s: list[float] = field(default_factory=list[float])
    orphans: list[int] = field(default_factory=list[int])
    seconds: float = 0.0
    peak_bytes: int = 0
    dying: list[int] = field(default_factory=list[int])
    figures: dict[str, Any] = field(default_factory=dict[str, Any])


def one_life(directory: Path, arguments: tuple[object, ...]) -> Lives:
    """Never killed: what the others are compared with."""
    directory.mkdir()
    lives = Lives(directory)
    _Life(lives, arguments).watch_until(float("inf"))
    return lives


def many_lives(directory: Path, arguments: tuple[object, ...], kills: int, whole: Lives, rng: random.Random) -> Lives:
    """At most so many kills at moments drawn from `rng`, each followed by the next life at once, until it ends."""
    directory.mkdir()
    lives, watches = Lives(directory), list[threading.Timer]()
    back_s, share_s = whole.back_s[0], (whole.seconds - whole.back_s[0]) / kills
    is_over = False
    while not is_over and lives.kills < kills:
        life = _Life(lives, arguments)
        is_over = life.watch_until(rng.uniform(0.3 * back_s, back_s + 1.5 * share_s))
        if not is_over:
            life.kill(rng, is_whole_tree=rng.random() < 0.5)
            watches.append(threading.Timer(_GONE_WITHIN_S, life.count_orphans))
            watches[-1].start()
    if not is_over:
        _Life(lives, arguments).watch_until(float("inf"))
    for watch in watches:
        watch.join()
    return lives


class _Life:
    def __init__(self, lives: Lives, arguments: tuple[object, ...]) -> None:
        self._lives = lives
        self._mark = f"{lives.directory}:{lives.kills}"
        self._logged_bytes = _logged_bytes(lives.directory)
        self._began_s = time.monotonic()
        environment = {LIFE: self._mark, "HEADRACE_HOME": str(lives.directory)}
        program = ("-m", "benchmarks.children.killed_mix", lives.directory, *arguments)
        self._process = start_python(*program, env=environment)

    def watch_until(self, after_s: float) -> bool:
        """Whether it ended by itself before that."""
        lives, is_back = self._lives, False
        while self._process.poll() is None:
            lived_s = time.monotonic() - self._began_s
            if lived_s >= after_s:
                return False
            if lived_s > _PATIENCE_S:
                raise ChildFailed(f"{self._mark} does not end")
            if not is_back and _logged_bytes(lives.directory) > self._logged_bytes:
                is_back = True
                lives.back_s.append(lived_s)
            there = dict.fromkeys([*tree_of(self._process.pid), *lives.dying])
            lives.peak_bytes = max(lives.peak_bytes, proportional_bytes(there))
            time.sleep(_SAMPLE_EVERY_S)
        lives.seconds += time.monotonic() - self._began_s
        printed = _printed(self._process)
        if self._process.returncode:
            raise ChildFailed(f"{self._mark} ended with {self._process.returncode}")
        lives.figures = json.loads(printed)
        return True

    def kill(self, rng: random.Random, *, is_whole_tree: bool) -> None:
        """The controller alone, or all its processes in any order."""
        lives, tree = self._lives, tree_of(self._process.pid)
        victims = tree if is_whole_tree else tree[:1]
        rng.shuffle(victims)
        for pid in victims:
            _send_kill(pid)
        lives.seconds += time.monotonic() - self._began_s
        self._process.wait()
        _printed(self._process)
        _note_durable(lives)
        lives.whole_trees += is_whole_tree
        lives.kills += 1
        lives.dying = tree

    def count_orphans(self) -> None:
        mark = f"{LIFE}={self._mark}\0".encode()
        there = (process for process in Path("/proc").iterdir() if process.name.isdigit())
        self._lives.orphans.append(sum(mark in _environment(process) for process in there))


def _note_durable(lives: Lives) -> None:
    """Nobody writes to the files now: only the controller does, and the next one is not there yet."""
    for agent, step in rows(lives.directory / "mix.run", _STEPS):
        lives.journaled_in.setdefault((agent, step), lives.kills)
    for (ordinal,) in rows(lives.directory / "mix.run.survey", _INTERVIEWS):
        lives.sealed_in.setdefault(ordinal, lives.kills)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Of an engine's file or a survey's; none where a kill came before there was one."""
    if not path.exists():
        return []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return []  # killed while it was being made
    finally:
        connection.close()


def _logged_bytes(directory: Path) -> int:
    return sum(file.stat().st_size for name in LOGS if (file := directory / name).exists())


def _printed(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    with process.stdout:
        return process.stdout.read()


def _send_kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, signal.SIGKILL)


def _environment(process: Path) -> bytes:
    """Empty for one that has ended and was not looked after yet."""
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
