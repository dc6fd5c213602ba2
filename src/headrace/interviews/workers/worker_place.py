"""A host's workers, as an executor of interviews sees them.

Does not cover: where a host's budget comes from (interviews.workers.survey_workers, interviews.workers.survey_nodes).
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.workers.pool import WorkerPool


@dataclass(frozen=True, eq=False, slots=True)
class WorkerPlace:
    """How many workers a host has, and what each may use above what it was forked with. `name` is for people, empty
    where there is one host.
    """

    pool: WorkerPool
    workers: int
    limit_bytes: int
    name: str = ""

    @property
    def all_bytes(self) -> int:
        """What its workers may use together: an interview that needs more than one's part has all of it."""
        return self.limit_bytes * self.workers
