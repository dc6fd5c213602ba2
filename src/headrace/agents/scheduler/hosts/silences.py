"""`Silences`: notices hosts that fell silent, which is a reading that does not come. Pure: the time is handed in.

Each host has one entry, which is put off when it comes up and the host was heard since: what a tick costs does not grow
with the readings in between. Does not cover: what follows for a silent host's runs (agents.scheduler.host_changes).
"""

from __future__ import annotations

import heapq

from headrace.agents.scheduler.hosts.host import Host


class Silences:
    def __init__(self) -> None:
        self._due: list[tuple[float, int, Host]] = []  # when each is silent, at the earliest

    def watch(self, host: Host) -> None:
        if host.silent_after_s is not None:
            heapq.heappush(self._due, (host.heard_s + host.silent_after_s, host.number, host))

    def take(self, now_s: float) -> list[Host]:
        """Take out the hosts that are silent now, of those that have not left."""
        found: list[Host] = []
        while self._due and self._due[0][0] <= now_s:
            _, _, host = heapq.heappop(self._due)
            if host.is_lost or host.silent_after_s is None:
                continue
            if host.heard_s + host.silent_after_s <= now_s:
                found.append(host)
            else:
                self.watch(host)
        return found

    def next_tick_s(self) -> float | None:
        return self._due[0][0] if self._due else None
