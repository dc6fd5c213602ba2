"""How a run stands at one moment, from its file and from the process that writes it.

Does not cover: the question to that process (interviews.steering.client), or showing it (cli.status.run_status, web).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.errors import NotSteerable
from headrace.interviews.steering.client import state_of
from headrace.interviews.steering.ended_runs import why_ended
from headrace.interviews.steering.messages import StateReply
from headrace.limits import Budgets, Keep
from headrace.results.file_facts import read_facts
from headrace.results.stats import Stats
from headrace.store.lock import writer_of
from headrace.store.run_file.details import RunOutcome
from headrace.store.run_file.removal import disk_bytes
from headrace.store.run_file.stored_job.kept_budgets import kept_budgets


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFileStatus:
    """A run at one moment. `live` is what its process says; `holder` is that process where it does not say anything:
    `trouble` has the reason.
    """

    path: Path
    stats: Stats
    total: int
    budgets: Budgets
    size_bytes: int
    live: StateReply | None
    holder: str | None
    kept: Keep
    outcome: RunOutcome | None
    trouble: str = ""

    @classmethod
    def at(cls, path: Path, *, is_brief: bool = False) -> RunFileStatus:
        """A brief look does not wait for a process that does not answer: who looks so, looks again soon."""
        live, holder, trouble = None, None, ""
        try:
            live = state_of(path, is_brief=is_brief)
        except NotSteerable as error:
            holder = writer_of(path.expanduser().resolve())
            trouble = "" if holder is None else error.message
        # The file after the process: of a run that has just ended, the end is seen.
        facts = read_facts(path)
        stats = facts.stats
        if (live or holder) and facts.noted_at is not None:
            # What the run has taken since then is not in its file yet.
            stats = replace(stats, seconds=stats.seconds + max(0.0, time.time() - facts.noted_at))
        return cls(
            path=path,
            stats=stats,
            total=facts.planned,
            budgets=kept_budgets(path),
            size_bytes=disk_bytes(path.expanduser().resolve()),
            live=live,
            holder=holder,
            kept=facts.keep,
            outcome=facts.outcome,
            trouble=trouble,
        )

    @property
    def goes_on(self) -> bool:
        return self.live is not None or self.holder is not None

    @property
    def done(self) -> int:
        """The interviews that have ended. In the file, those that are asked again have ended too."""
        return max(0, self.stats.interviews - (self.live.to_ask_again if self.live is not None else 0))

    @property
    def ended(self) -> str:
        """Why no process runs it although it is not complete, in words; empty otherwise."""
        if self.state != "not running":
            return ""
        return "It has not been run yet." if self.outcome is None else why_ended(self.outcome, self.budgets, self.stats)

    @property
    def state(self) -> str:
        if self.live is not None:
            return live_state(self.live)
        if self.holder is not None:
            return "running"
        return "complete" if self.stats.interviews >= self.total else "not running"


def live_state(live: StateReply) -> str:
    """What a run does, in a word, by what its process says."""
    if live.is_stopping:
        return "stopping"
    return "paused" if live.progress.is_paused else "running"
