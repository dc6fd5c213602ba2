"""Who waits how long, by priority: an engine under load beside an asyncio.PriorityQueue with a fixed pool of two.

Each scenario (children/fair_*) is played twice, with real workers and a model server on loopback: by an engine, and by
the peer at its best, which has the same service and the same sleeps and no memory limits. `BEFORE` has what the engine
of an earlier commit took for it: recorded then, not measured in this run. HEADRACE_CHECKOUT=/another/checkout measures
the engine in that checkout's src/ with these same scenarios.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import QUICK, Bench
from benchmarks.model_server import ANSWER_LETTERS, ModelServer, model_server
from benchmarks.processes import ROOT, ChildFailed, loop_ms, run_child
from benchmarks.report import Line, Table, loops

CHECKOUT = "HEADRACE_CHECKOUT"
BEFORE_COMMIT = "8587a14"
MOST_UNDECLARED = 1.3  # times what the same agents take with every `memory=` declared
# Seconds, the longest of each label; None where it never came. `HEADRACE_CHECKOUT` of that commit prints them.
BEFORE: dict[str, dict[str, float | None]] = {
    "breaker": {"HIGH, in conversation": 19.5, "HIGH, new": 21.7},
    "two_replies": {"HIGH": 6.0},
    "second_kind_beside": {"HIGH": 61.0},
    "mix_of_sizes": {"HIGH, undeclared": 29.3, "HIGH, declared": 31.3},
    "eight_alike": {"HIGH, undeclared": 11.1, "HIGH, declared": 8.7},
    "four_calls": {"HIGH": 4.1},
    "ten_users": {"HIGH": 10.1},
    "ask_beside_survey": {"CRITICAL": 41.4},
    "growing_alike": {
        "HIGH, until its end": 5.7,
        "LOW, until its end": 23.8,
        "HIGH, deaths": 1,
        "LOW, deaths": 1,
    },
    "critical_behind_low": {"CRITICAL": 19.1, "LOW, until its end": 20.1},
    "high_behind_low": {"HIGH": 19.2, "LOW, until its end": 20.2},
    "users_behind_runaway": {"HIGH, users": 39.6, "HIGH, the runaway until it was set aside": 41.6},
    "large_replies": {"NORMAL": 70.3},
}

_COUNTED = "deaths"
_AT_ONCE_QUICKLY = 4  # scenarios, where no target is proved

Figures = dict[str, list[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A scenario as it is shown. `most_s` are the targets by label; the other labels are shown without one.

    A model server is there where `latency_s` says how long it takes; its answer is that of model_server, so many times.
    """

    name: str
    title: str
    most_s: dict[str, float]
    latency_s: float | None = None
    answer_times: int = 1


PLAYS = (
    Play(
        name="breaker",
        title="a message killed its worker; 2 s replies",
        most_s={"HIGH, in conversation": 3.0, "HIGH, new": 5.0},
        latency_s=2.0,
    ),
    Play(name="two_replies", title="two 3 s replies at once, undeclared", most_s={"HIGH": 4.0}),
    Play(name="second_kind_beside", title="start of a second kind beside 73 MB", most_s={"HIGH": 10.5}),
    Play(name="mix_of_sizes", title="agents of 50-150 MB in 512 MB, all", most_s={}),
    Play(name="eight_alike", title="eight agents of 120 MB in 512 MB, all", most_s={}),
    Play(name="four_calls", title="four 2 s calls on two slots", most_s={"HIGH": 3.0}, latency_s=2.0),
    Play(name="ten_users", title="first 2 s replies to ten users", most_s={"HIGH": 3.0}, latency_s=2.0),
    Play(
        name="ask_beside_survey",
        title="ask beside a LOW survey, 300 a minute",
        most_s={"CRITICAL": 2.0},
        latency_s=0.2,
    ),
    Play(
        name="growing_alike",
        title="growing alike to 300 MB in 512 MB",
        most_s={"HIGH, until its end": 8.0, "HIGH, deaths": 0},
    ),
    Play(name="critical_behind_low", title="start behind two LOW, in 20 s steps", most_s={"CRITICAL": 4.0}),
    Play(name="high_behind_low", title="start behind two LOW, in 0.5 s steps", most_s={"HIGH": 3.0}),
    Play(name="users_behind_runaway", title="start behind a dead runaway", most_s={"HIGH, users": 3.0}),
    Play(
        name="large_replies",
        title="a survey with replies of 1 MB in 100 MB, all",
        most_s={"NORMAL": 15.0},
        latency_s=0.1,
        answer_times=1_000_000 // ANSWER_LETTERS,
    ),
)


def measure(bench: Bench) -> Table:
    checkout = Path(os.environ.get(CHECKOUT) or ROOT).resolve()
    is_quick = bench.sizes is QUICK
    with ThreadPoolExecutor(_AT_ONCE_QUICKLY if is_quick else 1) as played:
        waits = [[played.submit(_waits, bench, play, side, checkout) for side in ("engine", "pool")] for play in PLAYS]
        told = [(play, engine.result(), peer.result()) for play, (engine, peer) in zip(PLAYS, waits, strict=True)]
    lines = [
        line
        for play, engine, peer in told
        for line in lines_of(play, engine, peer, {} if is_quick else BEFORE.get(play.name, {}))
    ]
    notes = [
        "seconds until what is named: the longest of all that waited; peer: asyncio.PriorityQueue and a pool of two,",
        "in one process with the same sleeps and calls, without memory limits, preemption, journal or recovery",
        f"before: recorded from commit {BEFORE_COMMIT} with these scenarios, not measured in this run",
        loops([loop_ms()]),
    ]
    if checkout != ROOT:
        notes.insert(0, f"measured: the engine in {checkout}")
    return Table("fairness: waiting times by priority", lines, notes)


def _waits(bench: Bench, play: Play, side: str, checkout: Path) -> Figures:
    directory = bench.directory / f"fair-{play.name}-{side}"
    directory.mkdir()
    size = "quick" if bench.sizes is QUICK else "full"
    server = nullcontext(ModelServer(""))
    if play.latency_s is not None:
        server = model_server("--answer-times", play.answer_times, latency_s=play.latency_s)
    # A cache of its own: no reply is known from before.
    environment = {"PYTHONPATH": str(checkout / "src"), "HEADRACE_HOME": str(directory / "home")}
    with server as answering:
        told = run_child("fair_scenario", play.name, side, directory, answering.url, size, env=environment).figures
    if Path(told["source"]) != checkout:
        raise ChildFailed(f"{play.name} was played by {told['source']}, not by {checkout}")
    return told["waits"]


def lines_of(play: Play, engine: Figures, peer: Figures, before: dict[str, float | None]) -> list[Line]:
    """One for each label, and the share of what is declared where both are told."""
    lines = [_line(play, label, engine[label], peer[label], before) for label in engine]
    if "HIGH, declared" in engine:
        lines.append(_share(play, engine, before))
    return lines


def _line(play: Play, label: str, waits: list[float | None], peer: list[float | None], before: dict[str, float | None]):
    target_s, longest = play.most_s.get(label), longest_s(waits)
    target, is_met = "", None
    if target_s is not None:
        target, is_met = f"<= {shown(label, target_s)}", longest is not None and longest <= target_s
    earlier = shown(label, before[label]) if label in before else ""
    return Line(f"{play.title}: {label}", shown(label, longest), target, is_met, shown(label, longest_s(peer)), earlier)


def _share(play: Play, engine: Figures, before: dict[str, float | None]) -> Line:
    """What it costs to declare nothing."""
    share = _ratio(longest_s(engine["HIGH, undeclared"]), longest_s(engine["HIGH, declared"]))
    earlier = _ratio(before.get("HIGH, undeclared"), before.get("HIGH, declared"))
    is_met = share is not None and share <= MOST_UNDECLARED
    return Line(
        f"{play.title}: undeclared / declared",
        "never" if share is None else f"{share:.2f}",
        f"<= {MOST_UNDECLARED:g}",
        is_met,
        before="" if earlier is None else f"{earlier:.2f}",
    )


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def longest_s(waits: list[float | None]) -> float | None:
    """None where one of them never came."""
    return None if None in waits else max(wait for wait in waits if wait is not None)


def shown(label: str, figure: float | None) -> str:
    """Seconds, except of deaths, which are counted."""
    if figure is None:
        return "never"
    return f"{figure:.0f}" if label.endswith(_COUNTED) else f"{figure:.1f} s"
