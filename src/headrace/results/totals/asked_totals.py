"""The totals that a run was asked for, or that its file has: checked before a file is made, begun when it is open.

Does not cover: the texts (written_totals), or adding (running_totals, aggregator).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import OptionError, spelled
from headrace.limits import Keep, RunOptions
from headrace.plan.job import Job
from headrace.results.columns.catalog import Catalog, catalog_of
from headrace.results.totals.aggregator import OwnTotals
from headrace.results.totals.running_totals import RunningTotals, RunTotals
from headrace.results.totals.written_totals import (
    WrittenTotals,
    no_own_totals,
    own_totals_text,
    totals_from_text,
    written_totals,
)
from headrace.store.contents import decoding
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.keeping.stored_keep import Keeping, WantedKeeping
from headrace.store.run_file.run_file import RunFile
from headrace.store.run_file.run_schema import MAPPED


class AskedTotals(msgspec.Struct, frozen=True, kw_only=True):
    """`written` are totals as texts, `aggregator` is the user's own; both None for a file without totals."""

    path: Path
    wanted: WantedKeeping
    keep: Keep
    written: WrittenTotals | None
    aggregator: Any

    @classmethod
    def of(cls, options: RunOptions, kept: Keeping | None, path: Path) -> AskedTotals:
        """What these options ask for; where they say nothing, what the file has."""
        keep = None if options.keep is None else Keep(options.keep)
        group_by = tuple(options.group_by or ())
        written, aggregator, text = None, None, None
        if options.aggregate is not None:
            written = written_totals(options.aggregate, group_by)
            aggregator = options.aggregate if written is None else None
            text = own_totals_text(aggregator) if written is None else written.text()
        elif kept is not None and kept.totals is not None:
            with decoding(path, "its totals"):
                held = totals_from_text(kept.totals)
            if not isinstance(held, WrittenTotals):
                raise no_own_totals(path, held)
            written = held
        wanted = WantedKeeping(keep=keep, totals=text)
        kept = wanted.of_new_file() if kept is None else kept
        return cls(path=path, wanted=wanted, keep=kept.keep, written=written, aggregator=aggregator)

    def check(self, job: Job, *, is_heard: bool) -> None:
        """Refuse names that the job does not have, and a run whose answers nobody would ever see."""
        if self.written is not None:
            self.written.check(_catalog(job))
        if self.keep is Keep.NOTHING and not is_heard and self.written is None and self.aggregator is None:
            raise OptionError(
                spelled("{keep} keeps no answer, and nothing else takes them.", keep=Keep.NOTHING.value),
                fix='Add what is to be known of them, aggregate={"mean": "mean(answer.rating)"}, or take each with'
                " on_result= or job.stream().",
            )

    def begin(self, job: Job, file: RunFile) -> RunTotals | None:
        """The totals at the state that the file holds."""
        if self.written is None and self.aggregator is None:
            return None
        header = RunHeader.load(file.connection, self.path)
        if self.written is None:
            return OwnTotals(self.aggregator, header, file.totals)
        catalog = _catalog(job)
        with decoding(self.path, "its totals"):
            return RunningTotals(self.written, catalog, header, file.totals)


def _catalog(job: Job) -> Catalog:
    names = [question.question_name for question in job.survey.questions]
    is_mapped = job.survey.questions[0].kind == MAPPED
    agent, scenario = job.agents.source.census.kinds, job.scenarios.source.census.kinds
    return catalog_of(names, agent, scenario, list(job.models), 1, is_mapped=is_mapped)
