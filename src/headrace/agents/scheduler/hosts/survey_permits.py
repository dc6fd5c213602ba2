"""`HostSurveys`: how many interviews each survey on a host may have in flight. Permits are granted and revoked in bulk.

A survey and the agent runs beside it share one budget, and neither may starve the other. While a run waits for memory,
permits halve with each reading, down to an eighth of what the survey wants; without pressure they double. Beside a run
that has to be alone one permit stays. A survey pauses only where that run would not fit otherwise, or memory is nearly
exhausted, and after a pause it has a turn before the next. Does not cover: which interviews these are
(interviews.admission).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from headrace.agents.scheduler.events import GrantPermits, SurveyOpened, SurveyUsage
from headrace.memory.governor import Pressure
from headrace.priority import Priority

_FIRST_PERMITS = 2
_NARROWEST_PART = 8


class SurveyThrottle(IntEnum):
    """How far surveys must give way to runs."""

    NONE = 0
    HALVE = 1
    ONE_PERMIT = 2
    PAUSE = 3


NOT_THROTTLED = SurveyThrottle.NONE  # by itself: see agents.scheduler.scheduled_runs


@dataclass(slots=True)
class SurveyShare:
    id: str
    priority: Priority
    wanted: int
    permit_bytes: int
    granted: int = 0
    in_use: int = 0

    @property
    def least(self) -> int:
        return max(1, self.wanted // _NARROWEST_PART)

    @property
    def charged_bytes(self) -> int:
        """The memory charged to the survey. Revoked permits count until their interviews have ended."""
        return max(self.granted, self.in_use) * self.permit_bytes

    @property
    def owed_bytes(self) -> int:
        return max(0, self.least * self.permit_bytes - self.charged_bytes)


class HostSurveys:
    """The surveys of one host. Sums are kept: every decision about a run reads them, and only surveys change them."""

    def __init__(self, host: str, turn_s: float) -> None:
        self._host = host
        self._turn_s = turn_s
        self._paused_until_s: float | None = None
        self.by_id: dict[str, SurveyShare] = {}
        self.charged_bytes = 0
        self.in_use_bytes = 0
        self.owed_bytes = 0  # what they lack of the eighth that is theirs beside any number of runs
        self.least_bytes = 0  # what they would hold with one permit each
        self.are_at_rest = True  # at most one permit each: what is in use is not theirs

    def open(self, opened: SurveyOpened) -> None:
        self.by_id[opened.survey] = SurveyShare(opened.survey, opened.priority, opened.wanted, opened.permit_bytes)
        self._add_up()

    def used(self, used: SurveyUsage) -> None:
        survey = self.by_id[used.survey]
        survey.in_use, survey.permit_bytes = used.in_use, used.permit_bytes
        self._add_up()

    def close(self, survey: str) -> None:
        del self.by_id[survey]
        self._add_up()

    def may_pause(self, now_s: float) -> bool:
        return self._paused_until_s is None or now_s - self._paused_until_s >= self._turn_s

    def pause_ended(self, now_s: float) -> None:
        self._paused_until_s = now_s

    def regrant(self, pressure: Pressure, throttle: SurveyThrottle, room_bytes: int) -> list[GrantPermits]:
        """Return new totals for surveys whose permits change, after a reading that leaves `room_bytes` free."""
        grants: list[GrantPermits] = []
        for survey in self.by_id.values():
            granted = _permits(survey, pressure, throttle, room_bytes // len(self.by_id))
            if granted != survey.granted:
                survey.granted = granted
                grants.append(GrantPermits(survey=survey.id, host=self._host, permits=granted))
        if grants:
            self._add_up()
        return grants

    def _add_up(self) -> None:
        surveys = self.by_id.values()
        self.charged_bytes = sum(survey.charged_bytes for survey in surveys)
        self.in_use_bytes = sum(survey.in_use * survey.permit_bytes for survey in surveys)
        self.owed_bytes = sum(survey.owed_bytes for survey in surveys)
        self.least_bytes = sum(survey.permit_bytes for survey in surveys)
        self.are_at_rest = all(survey.in_use <= 1 for survey in surveys)


def _permits(survey: SurveyShare, pressure: Pressure, throttle: SurveyThrottle, room_bytes: int) -> int:
    most = _most(survey, pressure, throttle)
    if most <= 1:
        return min(most, survey.wanted)
    is_throttled = pressure is not Pressure.NORMAL or throttle is not SurveyThrottle.NONE
    aim = max(survey.least, survey.granted // 2) if is_throttled else max(_FIRST_PERMITS, survey.granted * 2)
    room = max(0, room_bytes) // survey.permit_bytes if survey.permit_bytes else survey.wanted
    return max(1, min(survey.wanted, aim, survey.granted + room))


def _most(survey: SurveyShare, pressure: Pressure, throttle: SurveyThrottle) -> int:
    """The most permits that pressure and runs allow. For a LOW survey each level counts as the next one."""
    felt = min(Pressure.EMERGENCY, pressure + 1) if survey.priority is Priority.LOW and pressure else pressure
    if throttle is SurveyThrottle.PAUSE or (felt == Pressure.EMERGENCY and survey.priority is not Priority.CRITICAL):
        return 0
    return 1 if throttle is SurveyThrottle.ONE_PERMIT or felt >= Pressure.PREEMPTING else survey.wanted
