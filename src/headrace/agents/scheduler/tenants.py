"""How many interviews the surveys of a host may have in flight. Covers: credits, granted and revoked in bulk.

A survey and the agent runs beside it share one budget, and neither may starve the other: while a run waits for memory,
credits halve with each reading, down to an eighth of what the survey wants; in calm they double. Beside a run that has
to be alone one credit stays. Only where that run would not fit otherwise, or memory is nearly exhausted, a survey
pauses, and after a pause it has a turn before the next.
Does not cover: which interviews these are (interviews.admission).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from headrace.agents.scheduler.events import Grant, TenantOpened, TenantUsed
from headrace.memory.governor import Pressure
from headrace.priority import Priority

_FIRST_CREDITS = 2
_NARROWEST_PART = 8


class Squeeze(IntEnum):
    """How much runs need the memory that surveys hold."""

    NONE = 0
    SHARE = 1
    ONE = 2
    PAUSE = 3


@dataclass(slots=True)
class Tenant:
    id: str
    priority: Priority
    wanted: int
    credit_bytes: int
    granted: int = 0
    in_use: int = 0

    @property
    def least(self) -> int:
        return max(1, self.wanted // _NARROWEST_PART)

    @property
    def charged_bytes(self) -> int:
        """Revoked credits count until they are given back."""
        return max(self.granted, self.in_use) * self.credit_bytes

    @property
    def owed_bytes(self) -> int:
        return max(0, self.least * self.credit_bytes - self.charged_bytes)


class Tenants:
    """Their sums are kept: every decision about a run asks for them, and only what surveys do changes them."""

    def __init__(self, host: str, turn_s: float) -> None:
        self._host = host
        self._turn_s = turn_s
        self._paused_until_s: float | None = None
        self.by_id: dict[str, Tenant] = {}
        self.charged_bytes = 0
        self.in_use_bytes = 0
        self.owed_bytes = 0  # what they lack of the part that is theirs beside any number of runs
        self.least_bytes = 0  # what they would hold with one credit each
        self.are_at_rest = True  # whether what is in use says nothing of them: one credit each at most

    def open(self, opened: TenantOpened) -> None:
        self.by_id[opened.tenant] = Tenant(opened.tenant, opened.priority, opened.wanted, opened.credit_bytes)
        self._add_up()

    def used(self, used: TenantUsed) -> None:
        tenant = self.by_id[used.tenant]
        tenant.in_use, tenant.credit_bytes = used.in_use, used.credit_bytes
        self._add_up()

    def close(self, tenant: str) -> None:
        del self.by_id[tenant]
        self._add_up()

    def may_pause(self, now_s: float) -> bool:
        return self._paused_until_s is None or now_s - self._paused_until_s >= self._turn_s

    def pause_ended(self, now_s: float) -> None:
        self._paused_until_s = now_s

    def regrant(self, pressure: Pressure, squeeze: Squeeze, room_bytes: int) -> list[Grant]:
        """New totals where they change, after a reading that leaves `room_bytes` free. One for each survey at most."""
        grants: list[Grant] = []
        for tenant in self.by_id.values():
            granted = _credits(tenant, pressure, squeeze, room_bytes // len(self.by_id))
            if granted != tenant.granted:
                tenant.granted = granted
                grants.append(Grant(tenant=tenant.id, host=self._host, credits=granted))
        if grants:
            self._add_up()
        return grants

    def _add_up(self) -> None:
        tenants = self.by_id.values()
        self.charged_bytes = sum(tenant.charged_bytes for tenant in tenants)
        self.in_use_bytes = sum(tenant.in_use * tenant.credit_bytes for tenant in tenants)
        self.owed_bytes = sum(tenant.owed_bytes for tenant in tenants)
        self.least_bytes = sum(tenant.credit_bytes for tenant in tenants)
        self.are_at_rest = all(tenant.in_use <= 1 for tenant in tenants)


def _credits(tenant: Tenant, pressure: Pressure, squeeze: Squeeze, room_bytes: int) -> int:
    most = _most(tenant, pressure, squeeze)
    if most <= 1:
        return min(most, tenant.wanted)
    is_squeezed = pressure is not Pressure.CALM or squeeze is not Squeeze.NONE
    aim = max(tenant.least, tenant.granted // 2) if is_squeezed else max(_FIRST_CREDITS, tenant.granted * 2)
    room = max(0, room_bytes) // tenant.credit_bytes if tenant.credit_bytes else tenant.wanted
    return max(1, min(tenant.wanted, aim, tenant.granted + room))


def _most(tenant: Tenant, pressure: Pressure, squeeze: Squeeze) -> int:
    """LOW feels each level as the next one."""
    felt = min(Pressure.EMERGENCY, pressure + 1) if tenant.priority is Priority.LOW and pressure else pressure
    if squeeze is Squeeze.PAUSE or (felt == Pressure.EMERGENCY and tenant.priority is not Priority.CRITICAL):
        return 0
    return 1 if squeeze is Squeeze.ONE or felt >= Pressure.PREEMPT else tenant.wanted
