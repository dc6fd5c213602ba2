"""kill -9 of the whole engine at random moments in the adversarial mix: the same results, and nothing done twice.

Agents of 50 to 150 MB with side effects among their steps, a survey and ten heartbeats in one budget, inline and in
processes; there either the controller alone or all processes at once. Compared with a run that nobody kills.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.engine_lives import Lives, many_lives, one_life, rows
from benchmarks.engine_mixes import BUDGET_BYTES
from benchmarks.processes import loop_ms
from benchmarks.report import Line, Table, loops, megabytes

_SLOTS = 4
_WINDOW = 100
_SURVEY = "SELECT ordinal, status, a0 FROM interviews ORDER BY ordinal"
_FINISHED = "SELECT r.name, s.name, s.finished_at FROM steps s JOIN runs r ON r.id = s.run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What the logs of all lives say, beside what was durable when each ended."""

    steps_again: int
    journaled_again: int
    effects: Counter[tuple[str, str]]
    unasked: int
    happened: int
    again: int
    asked_again: int
    most_asked_again: int
    sealed_again: int


def measure(bench: Bench) -> Table:
    seed = random.randrange(10**6)
    lines: list[Line] = []
    for isolation in ("inline", "process"):
        lines += _lines_of(bench, isolation, random.Random(f"{seed} {isolation}"))
    return Table(
        f"the engine, killed with SIGKILL (seed {seed})",
        lines,
        [
            f"{bench.sizes.mixed_agents} agents, {bench.sizes.mixed_interviews:,} interviews, {_SLOTS} slots",
            "back: from the start of a new process to its first step or interview, the import among it",
            "again: begun before a kill, a preemption or a death, and not journaled by then",
            "decided: effects that were cut short; their owner looked whether each had happened, or should again",
            "peak: of all processes together (PSS), those that a kill has left for a moment among them",
            loops([loop_ms()]),
        ],
    )


def _lines_of(bench: Bench, isolation: str, rng: random.Random) -> Iterator[Line]:
    sizes = bench.sizes
    arguments = (sizes.mixed_agents, sizes.mixed_interviews, BUDGET_BYTES, _SLOTS, isolation)
    whole = one_life(bench.directory / f"whole-{isolation}", arguments)
    lives = many_lives(bench.directory / f"killed-{isolation}", arguments, sizes.kills, whole, rng)
    account, effects = _account(lives), _account(whole).effects
    is_same = _survey_of(lives) == _survey_of(whole)
    right, back_s = lives.figures["right"], sorted(lives.back_s)
    told = f"{lives.kills}, {lives.whole_trees} of all processes" if isolation == "process" else str(lives.kills)
    twice = sum(count > 1 for count in account.effects.values())
    for name, measured, target, is_met in (
        ("kills", told, "", None),
        ("back, median and longest", f"{back_s[len(back_s) // 2]:.2f} s, {back_s[-1]:.2f} s", "", None),
        ("seconds in all, and never killed", f"{lives.seconds:.1f}, {whole.seconds:.1f}", "", None),
        ("agents with the right result", f"{right} of {sizes.mixed_agents}", "all", right == sizes.mixed_agents),
        ("interviews", f"{lives.figures['answered']:,}", "as if never killed", is_same),
        ("steps again, of them journaled", *_none_of(account.steps_again, account.journaled_again)),
        ("interviews again, of them sealed", *_none_of(account.asked_again, account.sealed_again)),
        (
            "interviews again by one kill",
            f"{account.most_asked_again}",
            f"<= {_WINDOW}, the window",
            account.most_asked_again <= _WINDOW,
        ),
        ("side effects", f"{account.effects.total()}", "each once", account.effects == effects and not twice),
        ("side effects begun twice unasked", f"{account.unasked}", "0", account.unasked == 0),
        ("side effects decided", f"{account.happened} happened, {account.again} again", "", None),
        ("processes left after 1 s", f"{sum(lives.orphans)}", "0", sum(lives.orphans) == 0),
        ("peak", megabytes(lives.peak_bytes), f"< {megabytes(BUDGET_BYTES)}", lives.peak_bytes < BUDGET_BYTES),
    ):
        yield Line(f"{isolation}: {name}", measured, target, is_met)


def _none_of(again: int, durable: int) -> tuple[str, str, bool]:
    return f"{again}, {durable}", "none of them", durable == 0


def _account(lives: Lives) -> Account:
    begun = [(int(life), (agent, step), float(at)) for life, agent, step, at in _logged(lives, "steps")]
    finished = {(agent, step): at for agent, step, at in rows(lives.directory / "mix.run", _FINISHED)}
    decided = Counter[tuple[str, str, str]]()
    for _, agent, step, decision in _logged(lives, "decided"):
        decided[agent, step, decision] += 1
    effects = Counter((agent, step) for _, agent, step in _logged(lives, "effects"))
    times_begun = Counter(step for _, step, _ in begun)
    asked = Counter[int]()
    by_kill = Counter[int]()
    for life, ordinal in _logged(lives, "asked"):
        asked[int(ordinal)] += 1
        by_kill[int(life)] += asked[int(ordinal)] > 1
    sealed = (int(life) > lives.sealed_in.get(int(ordinal), lives.kills) for life, ordinal in _logged(lives, "asked"))
    return Account(
        steps_again=len(begun) - len(times_begun),
        journaled_again=sum(
            life > lives.journaled_in.get(step, life) or at > finished[step] for life, step, at in begun
        ),
        effects=effects,
        unasked=sum(times_begun[step] > 1 + decided[*step, "again"] for step in effects),
        happened=sum(count for (_, _, decision), count in decided.items() if decision == "happened"),
        again=sum(count for (_, _, decision), count in decided.items() if decision == "again"),
        asked_again=asked.total() - len(asked),
        most_asked_again=max(by_kill.values(), default=0),
        sealed_again=sum(sealed),
    )


def _logged(lives: Lives, name: str) -> Iterator[list[str]]:
    path = lives.directory / name
    if path.exists():
        with path.open(encoding="ascii") as file:
            yield from map(str.split, file)


def _survey_of(lives: Lives) -> list[tuple[object, ...]]:
    return rows(Path(f"{lives.directory}/mix.run.survey"), _SURVEY)
