"""`HostIndex`: all hosts, and which of them a decision looks at, so that an event costs the same with 1 and with 1,000.

    look_at             hosts that changed since the last event, and now and then the next one in turn
    free_for            hosts that may take a start, the calmest first, of these the one with most room
    largest_first       hosts by what one run could have there beside nothing else
    with_slots_below    hosts where a slot of a lower priority is in use, the lowest first

Each of them gives a few hosts at a time, the best ones and some in turn; where there are few, all of them. A host that
is left out comes up at a later event: each has readings of its own. Hosts note that they have changed, and are ranked
anew when the next decision asks.

Does not cover: what is decided about one host (`host`), which run goes where (agents.scheduler.placing).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from headrace.agents.scheduler.hosts.host import LOWEST_ADMITTED, Host
from headrace.agents.scheduler.scheduled_runs import ScheduledRun
from headrace.memory.governor import Pressure
from headrace.priority import Priority

_FEW = 4  # hosts, which are all looked at
_TURN_EVERY = 4  # events; each host has its readings besides
_BEST = 4  # of a ranking, those that every decision looks at
_IN_TURN = 4  # of the others
_NOWHERE = -1
_Ranked: TypeAlias = tuple[int, int, Host]  # the bytes, negative so that the most come first; the host's number


class HostIndex:
    """A host that is leaving, or has no slots, is found by its name only; `left_behind` are those that leave and that
    runs have claimed. `open_count` hosts compute in fewer slots than they have, whatever pressure and claims allow.
    `changed` are hosts to be ranked.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Host] = {}
        self._with_slots: dict[str, Host] = {}
        self.left_behind: deque[Host] = deque()
        self.slot_count = 0
        self.open_count = 0
        self.changed: dict[int, Host] = {}  # by number; hosts add themselves
        self._joined = 0
        self._turns: deque[Host] = deque()  # the next in turn first
        self._looks = 0
        self._seats: dict[int, _Seat] = {}
        self._free = [_Ranking() for _ in Pressure]
        self._free_from = tuple(zip(self._free, LOWEST_ADMITTED, strict=True))
        self._fresh: dict[int, Host] = {}  # free since this event: most are taken at once, and are never ranked
        self._ranked_free = 0  # how many hosts are free and ranked
        self._by_room_alone = _Ranking()
        self._calm: list[dict[int, Host]] = [{} for _ in Pressure]  # by their level
        self._lowest: list[dict[int, Host]] = [{} for _ in Priority]  # by the lowest priority in use there
        self._unread = 0  # hosts that no reading came of yet
        self._best_room_bytes = 0  # of all hosts that there were: one that has left may come back
        self._largest_budget_bytes = 0
        self._gives_up_after_s: Counter[float] = Counter()
        self._most_preemptions: Counter[int] = Counter()

    def add(self, host: Host) -> None:
        self._joined += 1
        self.by_name[host.name] = host
        if not host.slot_count:  # no decision about runs looks at it
            host.enter_index(self._joined, {})
            return
        self._with_slots[host.name] = host
        self._turns.append(host)
        self._seats[self._joined] = _Seat()
        self._unread += 1
        self._largest_budget_bytes = max(self._largest_budget_bytes, host.limits.budget_bytes)
        self._count(host, 1)
        host.enter_index(self._joined, self.changed)

    def begin_leaving(self, host: Host) -> None:
        """Have the host take no more starts."""
        if host.is_leaving:
            return
        host.is_leaving = True
        if not host.slot_count:
            return
        self._unrank(host)
        self._count(host, -1)
        if host.claims:
            self.left_behind.append(host)

    def remove(self, host: Host) -> None:
        self.begin_leaving(host)
        self.changed.pop(host.number, None)
        del self.by_name[host.name]
        self._with_slots.pop(host.name, None)
        if len(self._turns) > 2 * len(self._with_slots) + _FEW:  # those that have left go when their turn comes
            self._turns = deque(each for each in self._turns if self._is_here(each))

    @property
    def has_slots(self) -> bool:
        return bool(self._with_slots)

    @property
    def gives_up_after_s(self) -> float:
        return max((seconds for seconds, hosts in self._gives_up_after_s.items() if hosts), default=0.0)

    @property
    def most_preemptions(self) -> int | None:
        """After how many preemptions the first host takes a run only alone; None where there is no host."""
        return min((most for most, hosts in self._most_preemptions.items() if hosts), default=None)

    def look_at(self) -> list[Host]:
        if self._fresh:
            self._rank_fresh()
        if len(self._with_slots) <= _FEW:
            if self.changed:
                self.refresh()
            return list(self._with_slots.values())
        found = [host for host in self.changed.values() if not host.is_lost]
        self.refresh()
        self._looks += 1
        if self._looks % _TURN_EVERY == 0:
            self._take_turn(found)
        return found

    def refresh(self) -> None:
        """Rank the hosts that have changed."""
        if self.changed:
            for number, host in self.changed.items():
                if not host.is_leaving:
                    self._rank(host, self._seats[number])
            self.changed.clear()

    def free_for(self, level: Priority) -> list[Host]:
        """Hosts with a free slot that no run has claimed, of the levels of pressure that let a priority in."""
        found = list(self._fresh.values())
        if self._ranked_free:
            for free, lowest in self._free_from:
                if free.entries and level >= lowest:
                    found += free.some()
        if self._fresh and len(found) > 1:
            found.sort(key=_calmest_first)
        return found

    def has_free(self) -> bool:
        return self._ranked_free > 0 or bool(self._fresh)

    def largest_first(self) -> list[Host]:
        return self._by_room_alone.some()

    @property
    def largest(self) -> Host | None:
        entries = self._by_room_alone.entries
        return entries[0][2] if entries else None

    def has_slots_below(self, level: Priority) -> bool:
        for hosts in self._lowest[:level]:  # noqa: SIM110 - any() takes thrice the time, and most events ask
            if hosts:
                return True
        return False

    def with_slots_below(self, level: Priority) -> Iterator[Host]:
        for hosts in self._lowest[:level]:
            for number in list(islice(hosts, _BEST)):
                host = hosts[number]
                if len(hosts) > _BEST:  # the next decision looks at others
                    del hosts[number]
                    hosts[number] = host
                yield host

    def calmest(self) -> Host | None:
        """A host of the lowest level of pressure that there is."""
        for hosts in self._calm:
            if hosts:
                return next(iter(hosts.values()))
        return None

    def could_hold(self, needs_bytes: int) -> bool:
        """Whether a host could hold a run that needs so much, beside nothing else, by its last reading."""
        largest = self.largest
        return largest is not None and needs_bytes <= largest.memory.room_alone_bytes

    def could_ever_hold(self, run: ScheduledRun, needs_bytes: int) -> bool:
        """The same for the host that had most memory free, of all that there were. A run that has started before had
        its memory then, and waits for it, unless it needs more than a whole budget.
        """
        may_be_any_budget = run.epoch or self._unread
        return needs_bytes <= (self._largest_budget_bytes if may_be_any_budget else self._best_room_bytes)

    def _take_turn(self, found: list[Host]) -> None:
        host = self._turns.popleft()
        if self._is_here(host):
            self._turns.append(host)
            if host not in found:
                found.append(host)

    def _is_here(self, host: Host) -> bool:
        return self.by_name.get(host.name) is host

    def _count(self, host: Host, change: int) -> None:
        self.slot_count += change * host.slot_count
        self._gives_up_after_s[host.limits.gives_up_after_s] += change
        self._most_preemptions[host.limits.most_preemptions] += change

    def _rank(self, host: Host, seat: _Seat) -> None:
        if host.is_read_anew:
            self._rank_by_reading(host, seat)
        number, level = host.number, seat.level
        is_open = host.computing < host.slot_count
        if is_open is not seat.is_open:
            self.open_count += 1 if is_open else -1
            seat.is_open = is_open
        if is_open and not host.claims and (not level or host.has_free_slot()):
            if seat.free_at == level:
                self._free[level].put(host, host.memory.room_bytes())
            else:
                self._take_from_free(number, seat)
                self._fresh[number] = host
        elif seat.free_at != _NOWHERE:
            self._take_from_free(number, seat)
        elif number in self._fresh:
            del self._fresh[number]
        first, second, third, fourth = host.per_priority
        lowest = 0 if first else 1 if second else 2 if third else 3 if fourth else _NOWHERE
        if lowest != seat.lowest:
            _move(self._lowest, host, seat.lowest, lowest)
            seat.lowest = lowest

    def _rank_by_reading(self, host: Host, seat: _Seat) -> None:
        host.is_read_anew = False
        memory, level = host.memory, host.governor.pressure
        if level != seat.level:
            _move(self._calm, host, seat.level, level)
            seat.level = level
        if memory.room_alone_bytes != seat.room_alone_bytes:
            seat.room_alone_bytes = memory.room_alone_bytes
            self._by_room_alone.put(host, memory.room_alone_bytes)
        best_bytes = memory.best_room_bytes
        if best_bytes is not None and (best_bytes > self._best_room_bytes or not seat.is_read):
            self._best_room_bytes = max(self._best_room_bytes, best_bytes)
            self._unread -= not seat.is_read
            seat.is_read = True

    def _rank_fresh(self) -> None:
        for number, host in self._fresh.items():
            level = self._seats[number].free_at = host.governor.pressure
            self._free[level].put(host, host.memory.room_bytes())
        self._ranked_free += len(self._fresh)
        self._fresh.clear()

    def _take_from_free(self, number: int, seat: _Seat) -> None:
        if seat.free_at != _NOWHERE:
            self._free[seat.free_at].drop(number)
            self._ranked_free -= 1
            seat.free_at = _NOWHERE

    def _unrank(self, host: Host) -> None:
        number, seat = host.number, self._seats.pop(host.number)
        _move(self._calm, host, seat.level, _NOWHERE)
        _move(self._lowest, host, seat.lowest, _NOWHERE)
        self._take_from_free(number, seat)
        self._fresh.pop(number, None)
        self._by_room_alone.drop(number)
        self.open_count -= seat.is_open
        self._unread -= not seat.is_read


class _Seat(Struct):
    """Where a host is ranked."""

    level: int = _NOWHERE
    free_at: int = _NOWHERE  # the level, where it is free
    lowest: int = _NOWHERE
    room_alone_bytes: int | None = None
    is_open: bool = False
    is_read: bool = False


class _Ranking:
    """Hosts by a number of bytes, the most first. An entry that moves takes a search and a shift: some microseconds
    with a thousand hosts.
    """

    def __init__(self) -> None:
        self.entries: list[_Ranked] = []
        self._of: dict[int, _Ranked] = {}
        self._turn = 0

    def put(self, host: Host, ranked_bytes: int) -> None:
        number = host.number
        before = self._of.get(number)
        if before is not None:
            if before[0] == -ranked_bytes:
                return
            self._take_out(before)
        entry = self._of[number] = (-ranked_bytes, number, host)
        insort(self.entries, entry)

    def drop(self, number: int) -> None:
        if (entry := self._of.pop(number, None)) is not None:
            self._take_out(entry)

    def _take_out(self, entry: _Ranked) -> None:
        del self.entries[bisect_left(self.entries, entry)]

    def some(self) -> list[Host]:
        """The best, then some of the others: from call to call, the next ones."""
        entries = self.entries
        if len(entries) == 1:
            return [entries[0][2]]
        if len(entries) > _BEST:
            begin = _BEST + self._turn % (len(entries) - _BEST)
            self._turn += _IN_TURN
            entries = entries[:_BEST] + entries[begin : begin + _IN_TURN]
        return [entry[2] for entry in entries]


def _calmest_first(host: Host) -> tuple[int, int, int]:
    return host.governor.pressure, -host.memory.room_bytes(), host.number


def _move(places: list[dict[int, Host]], host: Host, before: int, after: int) -> None:
    if before != _NOWHERE:
        del places[before][host.number]
    if after != _NOWHERE:
        places[after][host.number] = host
