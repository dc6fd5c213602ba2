"""Random histories for a model world. Covers: drawing, playing, ending and shrinking them.

A history is a list of plain actions; one that makes no sense where it stands does nothing, so that any part of a
history is one too. After its actions it is drained: memory calms down, or stays where it is stuck, hosts that are
leaving or silent go, and everything has to end. Hosts come, go, lie and fall silent in every third history, and in all
that have several; some have no slots, and hold surveys only.
"""

import random
from dataclasses import dataclass
from typing import NamedTuple

from headrace.agents.scheduler.events import PreemptRun
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.broken import Broken, check
from tests.agents.scheduler.rules import CheckedWorld
from tests.agents.scheduler.world import BUDGET, KINDS, WANTED, HostModel, Run

ACTIONS = 30
_ROUNDS = 400
_WHILE_IT_WAITS = ("reply", "out of memory", "lost", "late", "child")
_SECONDS = (0.05, 0.5, 1.0, 2.5, 6.0)
_WEIGHTS = {
    "submit": 22,
    "wait": 16,
    "step": 16,
    "grow": 15,
    "base": 6,
    "done": 6,
    "effect": 7,
    "survey": 4,
    "child": 3,
    "isolated child": 3,
    "ask": 6,
    "reply": 6,
    "cancel": 2,
    "raise": 4,
    "fail": 5,
    "out of memory": 3,
    "memory wanted": 3,
    "lost": 3,
    "warden": 1,
    "park": 2,
    "wake": 3,
    "beat": 3,
    "beat ends": 3,
    "late": 2,
    "budget": 1,
    "host": 1,
    "close": 0.1,
}
_NAMES, _CUMULATIVE = list(_WEIGHTS), [sum(list(_WEIGHTS.values())[: n + 1]) for n in range(len(_WEIGHTS))]


# What happens to hosts, or what they say.
_HOST_NAMES = ("host", "join", "leave", "lose", "silence", "speak", "lie", "lie", "join again", "wait", "submit")


class Action(NamedTuple):
    """`who` picks among those there are, `much` (0 to 1) is whatever amount the action needs."""

    name: str
    who: int
    much: float


_A_SMALL_ONE = Action("submit", 40, 0.1)  # HIGH, of the second kind, without a time limit
# Five runs, of which four start and the newest is pushed out: chance alone seldom gets there.
_CROWD = (
    *[_A_SMALL_ONE] * 5,
    *[Action("step", number, 0.0) for number in range(4)],
    Action("base", 0, 0.6),
    Action("grow", 0, 0.6),
    Action("grow", 1, 0.2),
    Action("wait", 2, 0.0),
)

_TALK = Action("submit", 73, 0.0)  # HIGH, of the second kind, small, without a time limit
_FAILS, _PARKS, _IS_LOST = (Action(name, -1, 0.0) for name in ("fail", "park", "lost"))  # whatever came last
# A circuit opens though a run is parked, is probed after its pause, and closes: a part of this, then chance.
_CIRCUIT = (
    *(_TALK, _PARKS),
    *(_TALK, _IS_LOST, _IS_LOST, _IS_LOST),
    *(_TALK, _FAILS) * 2,
    *(_TALK, _FAILS),
    *(Action("wake", 0, 0.0), _TALK),
    Action("wait", 4, 0.0),
    *(_TALK, _TALK, _PARKS),
    *(_TALK, _TALK, _TALK, _PARKS, _PARKS),
    *(_TALK, _TALK),
)
_FAILING_CHILDREN = (_TALK, *[Action("child", 1, 0.0)] * 3, *[_FAILS] * 3)
# A run and its child, whose worker dies again and again: the parent's end is told first, as executors do.
_DEADLY_CHILD = (_TALK, Action("child", -1, 0.0), *(Action("lost", -2, 0.0), _IS_LOST) * 3)
# Two equals, of which the older one has all that it is owed, and wants more.
_WANTS_MORE = (
    *[Action("submit", 37, 1.0)] * 2,
    *[Action("step", number, 0.0) for number in range(2)],
    *(Action("grow", 0, 0.6), Action("wait", 0, 0.0), Action("memory wanted", 0, 0.0)),
)
# Two, of which one ends the warden again and again; the other journals a step in between, or does not.
_ENDS_WARDEN = (_TALK, _TALK, *(Action("warden", 0, 0.0), Action("step", 1, 0.0)) * 2, *[Action("warden", 0, 0.0)] * 4)
# Two equals, of which the newer one is pushed out, comes back and is in the way again.
_AGAIN = (
    *[_A_SMALL_ONE] * 2,
    *[Action("step", number, 0.0) for number in range(2)],
    Action("base", 0, 0.93),
    Action("wait", 1, 0.0),
    Action("base", 0, 0.2),
    *[Action("wait", 3, 0.0)] * 3,
    *[Action("step", number, 0.0) for number in range(2)],
    Action("base", 0, 0.93),
)
# Two wait; the newer one goes on though the older one holds what it was promised, and meets its limit: chance hardly
# gets there.
_SHORT = (
    *[Action("submit", 37, 1.0)] * 2,
    Action("grow", 0, 0.98),
    *[Action("ask", number, 0.0) for number in range(2)],
    Action("wait", 0, 0.0),
    Action("reply", 1, 0.0),
    Action("out of memory", 3, 0.3),
    *(Action("reply", 0, 0.0), Action("done", 0, 0.0), Action("wait", 0, 0.0)),
)
# The same, where the older one goes on, and the newer one holds what it was promised; a third could start meanwhile.
_PROMISED = (
    *(Action("submit", 37, 1.0), Action("grow", 0, 0.05), Action("ask", 0, 0.0)),
    *(Action("submit", 37, 1.0), Action("grow", 1, 0.98), Action("ask", 1, 0.0)),
    Action("wait", 0, 0.0),
    Action("reply", 0, 0.0),
    Action("submit", 37, 0.0),
    Action("wait", 1, 0.0),
)
# A run whose host is lost again and again, and comes back: that is never the run's own fault.
_LOST_HOSTS = (_TALK, *(Action("lose", 0, 0.0), Action("join", 1, 0.0)) * 4)
# The large one needs more than the small host has; the small one behind it does not.
_LARGE, _SMALL = Action("submit", 9 * 97, 0.0), Action("submit", 37, 0.1)
_WAITS_FOR_THE_LARGE_HOST = (Action("submit", 37, 1.0), _LARGE, *[_SMALL] * 3, Action("wait", 0, 0.0))


@dataclass(frozen=True)
class History:
    seed: int
    slots: int
    hosts: int
    stuck_at: float | None  # the share of the budget where memory stays in the end, whatever is done
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        told = "\n".join(f"    {action.name:14} who={action.who} much={action.much:.3f}" for action in self.actions)
        where = f"slots={self.slots} hosts={self.hosts} stuck_at={self.stuck_at}"
        return f"seed {self.seed}, {len(self.actions)} actions, {where}\n{told}"


def _hosts(chance: float) -> int:
    if chance < 0.8:
        return 1
    return 2 if chance < 0.92 else 3 + int((chance - 0.92) * 60)  # up to seven


def _among_hosts(seed: int, hosts: int, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """With a few actions of hosts in between: their chance is their own, so that the other actions stay as they are."""
    if hosts == 1 and seed % 3:
        return actions
    chance, found = random.Random(-1 - seed), list(actions)
    for _ in range(chance.randint(1, 6)):
        name = _HOST_NAMES[chance.randrange(len(_HOST_NAMES))]
        found.insert(chance.randint(0, len(found)), Action(name, chance.getrandbits(16), chance.random()))
    return tuple(found)


def draw(seed: int, actions: int = ACTIONS) -> History:
    chance = random.Random(seed)
    names = chance.choices(_NAMES, cum_weights=_CUMULATIVE, k=chance.randint(actions // 3, actions))
    slots = chance.randint(1, 4)
    before = {1: _PROMISED, 2: _AGAIN, 3: _SHORT, 4: _CROWD}.get(slots, ()) if seed % 2 else ()
    hosts = _hosts(chance.random())
    stuck_at = chance.uniform(0.5, 1.02) if chance.random() < 0.2 else None
    actions = (
        before
        + (_CIRCUIT[: seed // 16 % (len(_CIRCUIT) + 1)] if seed % 16 == 2 else ())
        + (_FAILING_CHILDREN if seed % 32 == 6 else ())
        + (_WANTS_MORE if seed % 32 == 18 else ())
        + (_ENDS_WARDEN[: -(seed // 32 % 6) or None] if seed % 32 == 14 else ())
        + (_DEADLY_CHILD[: -(seed // 32 % 2) or None] if seed % 32 == 10 else ())
        + (_LOST_HOSTS if seed % 48 == 11 else ())
        + (_WAITS_FOR_THE_LARGE_HOST if seed % 8 == 4 and hosts > 1 else ())
        + tuple(Action(name, chance.getrandbits(16), chance.random()) for name in names)
    )
    return History(seed, slots, hosts, stuck_at, _among_hosts(seed, hosts, actions))


def play(history: History) -> CheckedWorld:
    """Raises Broken where a rule does not hold."""
    world = CheckedWorld(history.slots, history.hosts)
    for action in history.actions:
        _act(world, action)
    _drain(world, history)
    return world


def broken_rule(history: History) -> str | None:
    try:
        play(history)
    except Broken as broken:
        return str(broken)
    return None


def shortest(history: History) -> History:
    """The fewest actions that still break the same rule, as far as leaving some out can find."""
    rule, size = broken_rule(history), max(1, len(history.actions) // 2)
    while True:
        shorter = _without_some(history, size, rule)
        if shorter is not None:
            history = shorter
        elif size > 1:
            size //= 2
        else:
            return history


def first_broken(seeds: range) -> str | None:
    """What to print of the first history that breaks a rule, None where all hold."""
    for seed in seeds:
        history = draw(seed)
        if (rule := broken_rule(history)) is not None:
            return f"{rule!r} does not hold in\n{shortest(history)}"
    return None


def _without_some(history: History, size: int, rule: str | None) -> History | None:
    for start in range(0, len(history.actions), size):
        left = history.actions[:start] + history.actions[start + size :]
        shorter = History(history.seed, history.slots, history.hosts, history.stuck_at, left)
        if broken_rule(shorter) == rule:
            return shorter
    return None


def _act(world: CheckedWorld, action: Action) -> None:
    name, who, much = action
    running = [run for run in world.runs.values() if world.is_heard(run)]
    match name:
        case "submit":
            _submit(world, who, much)
        case "wait":
            _obey_preempts(world)
            world.wait(_SECONDS[who % len(_SECONDS)])
        case "base" if host := _pick(list(world.hosts.values()), who):
            host.base = int(host.size * much * much)
            world.read(host)
        case "budget" if host := _pick([host for host in world.hosts.values() if not host.is_silent], who):
            host.budget = min(host.size, int(host.size * (0.6 + much)))
            world.read(host)
        case "warden" if host := _pick([host for host in world.hosts.values() if not host.is_silent], who):
            world.end_warden(host)
        case "host" | "join" | "leave" | "lose" | "silence" | "speak" | "lie" | "join again":
            _act_on_host(world, name, who, much)
        case "survey" if host := _pick(list(world.hosts), who):
            _survey(world, host, who, much)
        case "beat":
            _beat(world, who, much)
        case "beat ends" if name := _pick(list(world.heartbeats), who):
            world.end_heartbeat(name)
        case "wake" if run := _pick(world.parked, who):
            world.parked.remove(run)
            world.submit_run(run)
        case "cancel" if run := _pick(list(world.runs.values()), who):
            world.cancel(run)
        case "raise" if run := _pick([run for run in world.runs.values() if not run.is_child], who):
            world.raise_priority(run, Priority((who >> 3) % 4))
        case "close" if not world.is_closing:
            world.close()
        case "out of memory" if stopping := [run for run in running if run.stop]:
            run = stopping[who % len(stopping)]  # chance alone seldom gets there
            world.end(run, ExitCause.OUT_OF_MEMORY, _limit_of(world, run, who, much))
        case _:
            if run := _pick(running, who):
                _act_on_run(world, run, name, who, much)


def _act_on_run(world: CheckedWorld, run: Run, name: str, who: int, much: float) -> None:
    if run.slot and run.slot.is_waiting and name not in _WHILE_IT_WAITS:
        return  # it computes nothing
    match name:
        case "ask" if run.slot:
            world.begin_wait(run.slot)
        case "reply":
            world.end_wait(run)
        case "isolated child":
            declared = int(BUDGET * (0.05 + much * 0.6)) if who % 3 else None
            world.submit_isolated(run, KINDS[who % len(KINDS)], declared)
        case "step":
            world.step(run)
        case "effect":
            world.effect(run)
        case "grow":
            run.memory = int(BUDGET * much * 0.7)
            if who % 2 and run.slot:
                world.read(world.hosts[run.slot.host])
        case "done":
            world.end(run, ExitCause.DONE)
        case "fail":
            world.end(run, ExitCause.FAILED, is_endpoints=who % 4 == 0)
        case "out of memory":
            world.end(run, ExitCause.OUT_OF_MEMORY, _limit_of(world, run, who, much))
        case "memory wanted":
            if run.slot and world.hosts[run.slot.host].lendable is not None:
                world.want_memory(run, is_urgent=who % 5 > 2)
        case "lost":
            world.end(run, ExitCause.LOST, with_warden=who % 5 in (1, 2))
        case "park":
            world.end(run, ExitCause.PARKED)
        case "child":
            world.submit(run.priority, KINDS[who % len(KINDS)], None, run, None)
        case "late":
            _tell_late(world, run, run.epoch - 1)
        case _:
            pass  # nothing there to do it with


def _limit_of(world: CheckedWorld, run: Run, who: int, much: float) -> int:
    """What its worker was held to when it met that: all it was owed, or less, where others had the rest."""
    if run.slot is None or world.hosts[run.slot.host].lendable is None:
        return 0
    if who % 23 == 0:
        return 50 * BUDGET  # it says so
    return max(1, int(world.owed(run.slot) * (1 if who % 3 else much)))


def _submit(world: CheckedWorld, who: int, much: float) -> None:
    priority = Priority((who >> 2) % 4)
    if priority is Priority.CRITICAL and who % 2:
        priority = Priority.HIGH
    declared = int(BUDGET * (0.05 + much * 0.3)) if who % 3 else None
    if who % 97 == 0:
        declared = int(BUDGET * (0.9 + much * 0.2))
    limit_s = 5.0 if (who >> 5) % 8 == 0 else None
    world.submit(priority, KINDS[(who >> 4) % len(KINDS)], declared, None, limit_s)


def _tell_late(world: CheckedWorld, run: Run, epoch: int) -> None:
    """News of an attempt that was replaced, or never was: nothing may come of it."""
    late = Run(run.id, run.kind, run.priority, None, 0.0, 0, epoch=epoch)
    world.effect(late)
    world.end(late, ExitCause.FAILED)


def _survey(world: CheckedWorld, host: str, who: int, much: float) -> None:
    if host not in world.granted:
        world.open_survey(host, Priority(who % 3))
    elif who % 7 == 0:
        world.close_survey(host)
    else:
        world.use_survey(host, much)


def _beat(world: CheckedWorld, who: int, much: float) -> None:
    name = f"beat{who % 3}"
    if who % 11 == 0:
        world.remove_heartbeat(name)
    elif world.hosts:
        world.add_heartbeat(name, list(world.hosts)[who % len(world.hosts)], much)


def _lose_or_join(world: CheckedWorld, who: int) -> None:
    if len(world.hosts) > 1:
        world.lose(list(world.hosts)[who % len(world.hosts)])
    else:
        world.join(f"host{world.ids + 10}", 1 + who % 3)


def _act_on_host(world: CheckedWorld, name: str, who: int, much: float) -> None:
    host = _pick(list(world.hosts.values()), who)
    match name:
        case "host":
            _lose_or_join(world, who)
        case "join":
            world.join(f"host{world.ids + 20 + who % 5}", who % 4, int(BUDGET * (0.4 + 0.6 * much)))
        case _ if host is None:
            pass
        case "leave":
            world.leave(host)
        case "lose":
            world.lose(host.name)
        case "silence":
            host.is_silent = True
        case "speak":
            host.is_silent = False
        case "join again":
            world.join(host.name, host.slot_count, host.size)
        case _:
            _lie(world, host, who)


def _lie(world: CheckedWorld, host: HostModel, who: int) -> None:
    elsewhere = tuple((run.id, 5 * BUDGET) for run in world.runs.values() if not run.slot or run.slot.host != host.name)
    running = [run for run in world.runs.values() if world.is_heard(run)]
    match who % 7:
        case 0 | 1:
            world.read_what_cannot_be(host, who >> 4)
        case 2:
            world.read_late(host)
        case 3:
            world.read_of_nobody()
        case 4:
            world.read(host, (*elsewhere, (10**6, BUDGET)))
        case 5 if run := _pick([run for run in running if not run.effects], who):
            world.end_effect_that_never_began(run)
        case _ if run := _pick([run for run in world.runs.values() if not run.slot], who):
            _tell_late(world, run, run.epoch + 1)  # as though it had been started there
        case _:
            pass


def _obey_preempts(world: CheckedWorld) -> None:
    for run in list(world.runs.values()):
        if not world.is_heard(run) or not isinstance(run.stop, PreemptRun) or run.effects:
            continue
        if run.slot.is_waiting or not run.stop.is_patient:  # others take their time
            stop(world, run)


def stop(world: CheckedWorld, run: Run) -> None:
    """It stops at its next step; one that only waits for a model or a child stops at once."""
    if run.slot and run.slot.is_waiting:
        world.end(run, ExitCause.PREEMPTED)
    else:
        world.step(run)


def _drain(world: CheckedWorld, history: History) -> None:
    """Everything that still runs takes its steps and ends; everything that waits gets its turn."""
    for name in list(world.heartbeats):
        world.end_heartbeat(name)
    for number in range(_ROUNDS):
        for host in world.hosts.values():
            host.base = 50 if history.stuck_at is None else int(host.size * history.stuck_at)
            host.budget = host.budget if host.is_silent else host.size
        if not world.runs:
            break
        _drain_round(world, number)
    check(not world.runs, "everything ends, under pressure that never falls too")
    if history.stuck_at is None and world.granted and not world.is_closing:
        _check_surveys_recover(world)


def _drain_round(world: CheckedWorld, number: int) -> None:
    for host in world.granted:
        if world.granted[host] != world.in_use[host]:
            world.use_survey(host, 1.0)
    for name in list(world.heartbeats):
        world.end_heartbeat(name)
    for run in [run for run in world.parked if run.is_isolated and not world.is_closing]:
        world.parked.remove(run)
        world.submit_run(run)
    for run in list(world.runs.values()):
        if world.is_heard(run):
            _go_on(world, run, world.hosts[run.slot.host])
    for host in list(world.hosts.values()):
        if host.is_leaving and not host.slots:
            world.lose(host.name)
    if not world.takers and not world.is_closing:
        world.join("last", 2)
    world.wait(1.0 + number // 40)


def _go_on(world: CheckedWorld, run: Run, host: HostModel) -> None:
    """One step; after two seconds it is done."""
    if run.slot and run.slot.is_waiting:
        if isinstance(run.stop, PreemptRun):
            world.end(run, ExitCause.PREEMPTED)
        elif run.effects:
            world.end_effect(run)
        else:
            world.end_wait(run)
        return
    run.memory = max(0, min(run.memory, run.slot.reserved // 4, (host.size - host.base) // 4)) if run.slot else 0
    is_old = world.now_s - run.began_s >= 2.0
    world.step(run)
    if is_old and run.slot:
        world.end(run, ExitCause.DONE)


def _check_surveys_recover(world: CheckedWorld) -> None:
    for _ in range(30):
        for host in world.granted:
            world.use_survey(host, 1.0)
        world.wait(1.0)
    stay = [host.name for host in world.hosts.values() if not host.is_silent and not host.is_leaving]
    check(all(world.granted.get(host, WANTED) == WANTED for host in stay), "surveys get back all they want")


def _pick(among: list, who: int):
    return among[who % len(among)] if among else None
