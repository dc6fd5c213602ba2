"""The header of a run file: its questions, models and dictionary, which every reader of its rows needs.

It is small. A run may change the models' settings when it begins (stored_job.kept_models); the rest stays. Who reads it
from a file that another process may be writing does so inside a transaction: its checksum has to be of the same moment.
Does not cover: the plan (stored_plan), the lists (stored_lists).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import apsw
import msgspec

from headrace.errors import InvalidInput
from headrace.limits import Keep
from headrace.store.contents import decoding, one_value, typed_rows
from headrace.store.run_file.keeping.stored_keep import Keeping, read_keeping
from headrace.store.run_file.rows import DetailPacker
from headrace.store.run_file.run_schema import MAPPED
from headrace.store.run_file.stored_job.plan_check import check_plan, has_checked_rows
from headrace.survey.model import Model
from headrace.survey.questions import Question, question_from_dict
from headrace.survey.record import AnswerRecord
from headrace.survey.values import SqlValue, decode_value, from_sql

_MOST_DICTIONARY_BYTES = 1_000_000
_MOST_MODELS = 100_000


class RunHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Made by `load`. `has_checksums` is false for a file that an older Headrace wrote: its rows count as unchecked."""

    path: Path
    question_names: tuple[str, ...]
    holds_bools: tuple[bool, ...]
    models: tuple[Model, ...]
    is_mapped: bool
    packer: DetailPacker
    has_checksums: bool
    survey_row: str
    keeping: Keeping

    @classmethod
    def load(cls, connection: apsw.Connection, path: Path) -> RunHeader:
        """Read the header; refused where it is damaged."""
        check_plan(connection, path)
        keeping = read_keeping(connection, path)
        with decoding(path, "its questions and models"):
            questions = typed_rows(
                connection, tuple[str, int, str], "SELECT name, holds_bools, kind FROM questions ORDER BY position"
            )
            models = typed_rows(
                connection, tuple[str], "SELECT model FROM models ORDER BY position LIMIT ?", (_MOST_MODELS,)
            )
            return cls(
                path=path,
                question_names=_distinct(name for name, _, _ in questions),
                holds_bools=tuple(bool(held) for _, held, _ in questions),
                models=tuple(Model.from_file(row, str(path)) for (row,) in models),
                is_mapped=questions[0][2] == MAPPED,
                packer=DetailPacker(read_dictionary(connection)),
                has_checksums=has_checked_rows(connection),
                survey_row=one_value(connection, str, "SELECT value FROM meta WHERE key = 'survey'"),
                keeping=keeping,
            )

    def question(self, position: int) -> Question:
        """A question of the survey as it was written, templates and all."""
        with decoding(self.path, "its survey"):
            return question_from_dict(decode_value(self.survey_row)["questions"][position])

    def check_has_texts(self, what: str) -> None:
        """Refuse to show a prompt or a raw response of a file that keeps neither."""
        if self.keeping.keep is Keep.ANSWERS:
            raise InvalidInput(
                f'{self.path} has no {what}: it keeps answers without prompts and raw responses (keep="answers").',
                fix="job.prompts() writes the prompts again. To keep both, run the job into another file.",
            )

    def answered(
        self, stored: list[SqlValue], more: str | None, records: Mapping[int, AnswerRecord]
    ) -> dict[int, object]:
        """The answers by position, for what is filled with them again. Where records have them they are taken from
        there: a view may read some of the columns only.
        """
        if self.keeping.keep is Keep.ANSWERS:
            return dict(enumerate(self.answers(stored, more).values()))
        return {
            place: from_sql(record.value, as_bool=self.holds_bools[place])
            for place, record in records.items()
            if place < len(self.holds_bools)
        }

    def answers(self, stored: Sequence[SqlValue], more: str | None) -> dict[str, object]:
        """An interview's answers by question name, each in its own type."""
        if more is None and not any(self.holds_bools) and bytes not in set(map(type, stored)):
            return dict(zip(self.question_names, stored, strict=True))  # as they are
        values = [from_sql(value, as_bool=held) for value, held in zip(stored, self.holds_bools, strict=False)]
        if more is not None:
            values += decode_value(more)
        return dict(zip(self.question_names, values, strict=True))


def read_dictionary(connection: apsw.Connection) -> bytes:
    sql = "SELECT value FROM meta WHERE key = 'dictionary' AND length(value) <= ?"
    return one_value(connection, bytes, sql, (_MOST_DICTIONARY_BYTES,))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    held = tuple(names)
    if len({name.lower() for name in held}) < len(held) or not all(held):
        raise ValueError("two questions of one name")
    return held
