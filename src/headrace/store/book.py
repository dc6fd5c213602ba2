"""What is needed to read a run file's rows: its questions, models and dictionary. Small, and fixed for the file."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from headrace.store.rows import DetailPacker
from headrace.store.schema import MAPPED
from headrace.survey.models import Model
from headrace.survey.values import SqlValue, decode_value, from_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBook:
    question_names: tuple[str, ...]
    holds_bools: tuple[bool, ...]
    models: tuple[Model, ...]
    is_mapped: bool
    packer: DetailPacker

    @classmethod
    def load(cls, connection: apsw.Connection) -> RunBook:
        questions = list(connection.execute("SELECT name, holds_bools, kind FROM questions ORDER BY position"))
        models = connection.execute("SELECT model FROM models ORDER BY position")
        return cls(
            question_names=tuple(name for name, _, _ in questions),
            holds_bools=tuple(bool(held) for _, held, _ in questions),
            models=tuple(Model.from_file(row, connection.filename) for (row,) in models),
            is_mapped=questions[0][2] == MAPPED,
            packer=DetailPacker(connection.execute("SELECT value FROM meta WHERE key = 'dictionary'").get),
        )

    def answers(self, stored: list[SqlValue], more: str | None) -> dict[str, object]:
        """An interview's answers by question name, in their own types."""
        values = [from_sql(value, as_bool=held) for value, held in zip(stored, self.holds_bools, strict=False)]
        if more is not None:
            values += decode_value(more)
        return dict(zip(self.question_names, values, strict=True))
