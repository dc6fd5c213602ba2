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
from headrace.models.model_endpoints import needed_keys
from headrace.results.file_facts import read_facts
from headrace.results.stats import Stats
from headrace.store.lock import writer_of
from headrace.store.run_file.details import RunOutcome
from headrace.store.run_file.removal import disk_bytes
from headrace.store.run_file.stored_job.kept_budgets import kept_budgets

NEEDS_KEY = "needs a key"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFileStatus:
    """A run at one moment. `live` is what its process says; `holder` is that process where it does not say anything:
    `trouble` has the reason. `budgets_trouble` says why the next run does not use the file's budgets; mostly empty.
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
    budgets_trouble: str = ""

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
        stats, kept = facts.stats, kept_budgets(path)
        if (live or holder) and facts.noted_at is not None:
            # What the run has taken since then is not in its file yet.
            stats = replace(stats, seconds=stats.seconds + max(0.0, time.time() - facts.noted_at))
        return cls(
            path=path,
            stats=stats,
            total=facts.planned,
            budgets=kept.budgets,
            size_bytes=disk_bytes(path.expanduser().resolve()),
            live=live,
            holder=holder,
            kept=facts.keep,
            outcome=facts.outcome,
            trouble=trouble,
            budgets_trouble=kept.trouble,
        )

    @property
    def goes_on(self) -> bool:
        return self.live is not None or self.holder is not None

    @property
    def done(self) -> int:
        """The interviews that have ended. In the file, those that are asked again have ended too."""
        return max(0, self.stats.interviews - (self.live.to_ask_again if self.live is not None else 0))

    @property
    def is_complete(self) -> bool:
        return not self.goes_on and self.stats.interviews >= self.total

    @property
    def ended(self) -> str:
        """Why no process runs it although it is not complete, in words; empty otherwise."""
        if self.goes_on or self.is_complete:
            return ""
        if self.outcome is None:
            return "It has not been run yet."
        key = f" It needs a key. {self.needed_keys}" if self.needed_keys else ""
        return why_ended(self.outcome, self.budgets, self.stats) + key

    @property
    def needed_keys(self) -> str:
        """What to do about keys that are missing or refused, as its process says, or as it was at the end of the latest
        run; empty where none is.
        """
        if self.live is not None:
            return needed_keys(self.live.endpoints)
        return "" if self.holder is not None or self.is_complete else needed_keys(self.stats.endpoints)

    @property
    def state(self) -> str:
        if self.live is not None:
            return live_state(self.live)
        if self.holder is not None:
            return "running"
        if self.is_complete:
            return "complete"
        return NEEDS_KEY if self.needed_keys else "not running"


def live_state(live: StateReply) -> str:
    """How a run stands, in a word, by what its process says."""
    doing = live_activity(live)
    return NEEDS_KEY if doing == "running" and needed_keys(live.endpoints) else doing


def live_activity(live: StateReply) -> str:
    """What a run's process does, in a word: a run that needs a key for one of its models goes on with the others."""
    if live.is_stopping:
        return "stopping"
    return "paused" if live.progress.is_paused else "running"
