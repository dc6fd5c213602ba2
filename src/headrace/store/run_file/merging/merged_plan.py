"""The plan of a merged file: that of the first file, grown by what the lists of each other file add.

Covers: what may be merged, the joined lists in the new file, its identity, and where each file's interviews stand in
the new plan. Does not cover: how two lists become one (list_joining), or the rows (merging).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import apsw
from msgspec.structs import replace

from headrace.errors import RunFileError
from headrace.plan import differences
from headrace.plan.identity import described
from headrace.plan.product import Coordinates, Plan
from headrace.store.contents import decoding, raw_rows
from headrace.store.run_file.merging.list_joining import (
    Places,
    are_same_rows,
    join_models,
    join_rows,
    models_digest,
    rows_digest,
    same,
)
from headrace.store.run_file.merging.merge_source import MergeSource
from headrace.store.run_file.stored_job.creation import SETTINGS
from headrace.survey.survey import Survey

LISTS = ("agents", "scenarios")
_SEPARATELY = "Read the files side by side instead: headrace results a.run b.run, or Results.open(a) + Results.open(b)."


@dataclass(slots=True)
class PlanMapping:
    """Where an interview of an added file stands in the new plan."""

    plan: Plan
    agents: Places
    scenarios: Places
    models: Places

    def coordinates(self, ordinal: int) -> Coordinates:
        at = self.plan.coordinates(ordinal)
        places = self.agents(at.agent), self.scenarios(at.scenario), self.models(at.model)
        return Coordinates(at.iteration, *places)


class MergedPlan:
    """The new file's plan and identity, as far as files were added. The first file's lists are in the new file."""

    def __init__(self, connection: apsw.Connection, first: MergeSource) -> None:
        self._connection = connection
        self._first = first
        self.plan = first.plan
        self.identity = first.identity

    def check_is_same_survey(self, source: MergeSource) -> None:
        """Refuse a file that is not of this survey."""
        ours, theirs = self.identity, source.identity
        if ours.survey != theirs.survey:
            with decoding(source.path, "its survey"):
                pair = (Survey.from_row(each.header.survey_row) for each in (source, self._first))
                said = "; ".join(islice(differences.of_surveys(*pair), 3))
            self._refuse(source, f"they ask different surveys: {said}" if said else "they ask different surveys")
        if self._first.header.keeping != source.header.keeping:
            self._refuse(source, "one keeps prompts and raw responses, and the other does not")
        if ours.where != theirs.where:
            self._refuse(source, "they leave out different combinations (--where)")

    def add(self, source: MergeSource) -> PlanMapping:
        """Join the lists; refused where more than one of them differs, because that would make new combinations."""
        shape, theirs = self.plan.shape, source.plan.shape
        models = [row for (row,) in raw_rows(self._connection, "SELECT model FROM models ORDER BY position")]
        their_models = [row for (row,) in raw_rows(source.connection, "SELECT model FROM models ORDER BY position")]
        places_of_models, added = join_models(models, their_models, source.path)
        lengths = {"agents": shape.agent, "scenarios": shape.scenario}
        differ = [table for table in LISTS if not self._has_list(source, table, lengths[table])]
        if added or len(their_models) != len(models):
            differ.append("models")
        self._check_differences(source, differ, has_other_n=shape.iteration != theirs.iteration)
        places: dict[str, Places] = dict.fromkeys(LISTS, same)
        for table in set(differ) & set(LISTS):
            places[table], lengths[table] = join_rows(self._connection, source, table, lengths[table])
            self._add_fields(source, table)
        for number, row in enumerate(added, len(models)):
            copied = next(iter(raw_rows(source.connection, "SELECT name, service FROM models WHERE model = ?", (row,))))
            self._connection.execute("INSERT INTO models VALUES(?, ?, ?, ?)", (number, *copied, row))
        iterations = max(shape.iteration, theirs.iteration)
        models = [*models, *added]
        grown = Coordinates(iterations, lengths["agents"], lengths["scenarios"], len(models))
        if grown[1:] != shape[1:]:
            self._identify(source, differ[0], grown, models)
        self.plan = self.plan.grown(grown)
        return PlanMapping(source.plan, places["agents"], places["scenarios"], places_of_models)

    def _has_list(self, source: MergeSource, table: str, length: int) -> bool:
        is_same_text = getattr(self.identity, table) == getattr(source.identity, table)
        if is_same_text:
            return True
        if table == "agents" and source.meta(SETTINGS) != self._first.meta(SETTINGS):
            self._refuse(source, "their agents have different codebooks or templates")
        return are_same_rows(self._connection, source, table, length)

    def _check_differences(self, source: MergeSource, differ: list[str], *, has_other_n: bool) -> None:
        if len(differ) > 1:
            what = " and ".join(differ)
            self._refuse(
                source, f"both their {what} differ, and the merged plan would have combinations that neither has asked"
            )
        if differ and has_other_n:
            self._refuse(source, f"their {differ[0]} differ, and how often each is asked (n) differs too")
        if self.identity.where and (differ or self.plan.boxes != source.plan.boxes):
            self._refuse(source, "they leave combinations out (--where), and are not of the same job")

    def _identify(self, source: MergeSource, table: str, shape: Coordinates, models: list[str]) -> None:
        """Name the list that has grown by its content: as the other file does where it is that file's whole list."""
        length: int = getattr(shape, table[:-1])
        if table == "models":
            found = described(length, "model", models_digest(models))
        elif are_same_rows(self._connection, source, table, length):
            found = getattr(source.identity, table)
        else:
            settings = self._first.meta(SETTINGS) if table == "agents" else None
            found = described(length, table[:-1], rows_digest(self._connection, table, settings))
        self.identity = replace(self.identity, **{table: found})

    def _add_fields(self, source: MergeSource, table: str) -> None:
        owner = table[:-1]
        last = "SELECT coalesce(max(position), -1) + 1 FROM fields WHERE owner = ?"
        first: int = self._connection.execute(last, (owner,)).get
        sql = "SELECT name, kinds FROM fields WHERE owner = ? ORDER BY position"
        for at, (name, kinds) in enumerate(raw_rows(source.connection, sql, (owner,)), first):
            self._connection.execute(
                "INSERT INTO fields VALUES(?, ?, ?, ?) ON CONFLICT DO UPDATE SET kinds = kinds | excluded.kinds",
                (owner, name, kinds, at),
            )

    def _refuse(self, source: MergeSource, what: str) -> None:
        raise RunFileError(
            f"{self._first.path} and {source.path} cannot be merged: {what}.", path=source.path, fix=_SEPARATELY
        )
