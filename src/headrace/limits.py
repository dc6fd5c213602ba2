"""Option values: frozen, keyword-only, checked when made. Does not cover: who acts on them (schedule, runtime)."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """The budget and the levels at which the governor acts, as shares of it: enter at, leave at."""

    budget_bytes: int
    shrink_at: float = 0.70
    shrink_until: float = 0.60
    preempt_at: float = 0.85
    preempt_until: float = 0.75
    emergency_at: float = 0.95
    emergency_until: float = 0.80
    calm_s: float = 2.0

    def __post_init__(self) -> None:
        if self.budget_bytes <= 0:
            raise OptionError(f"A memory budget of {self.budget_bytes} bytes leaves no room.")
        enters = (self.shrink_at, self.preempt_at, self.emergency_at)
        leaves = (self.shrink_until, self.preempt_until, self.emergency_until)
        if not (0 < enters[0] < enters[1] < enters[2] <= 1) or list(leaves) != sorted(leaves):
            raise OptionError("Memory levels must rise: shrink below preempt below emergency.")
        if any(leave >= enter for enter, leave in zip(enters, leaves, strict=True)):
            raise OptionError("Each memory level must be left below the line where it is entered.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """How often one question is asked again, and how long a call that may succeed later waits."""

    answer_attempts: int = 3
    call_attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0

    def __post_init__(self) -> None:
        if self.answer_attempts < 1 or self.call_attempts < 1:
            raise OptionError("A question must be asked at least once.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `job.run(...)` was asked for. `n` and `memory` are None where the user left the choice to us."""

    concurrency: int = 200
    n: int | None = None
    limit: int | None = None
    memory: str | int | None = None
    fresh: bool = False
    extend: bool = False
    retry_failed: bool = False
    stop_on_exception: bool = False
    progress_bar: bool = False

    def __post_init__(self) -> None:
        _at_least_one("concurrency", self.concurrency)
        _at_least_one("n", self.n)
        _at_least_one("limit", self.limit)
        if self.fresh and self.extend:
            raise OptionError("fresh=True starts over and extend=True goes on.", fix="Choose one of them.")


def _at_least_one(name: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{name}={value!r} must be a whole number of at least 1.")
