"""The options of a question as one interview saw them: filled with its data, in the order that it was shown.

They are not stored: the survey, the interview's number, its data and its answers give them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from headrace.survey.asked_question import asked_questions
from headrace.survey.names import Context, named_agent
from headrace.survey.record import AnswerRecord
from headrace.survey.survey import Survey
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields


@lru_cache(maxsize=8)  # the files that a program looks at together
def asked_again(survey_row: str) -> AskedAgain:
    """The questions of a survey that a run file holds."""
    return AskedAgain(Survey.from_row(survey_row))


class AskedAgain:
    """A survey whose questions are filled a second time; compiled once for all interviews of a file."""

    def __init__(self, survey: Survey) -> None:
        self._asked = asked_questions(survey)
        self._resolved = survey.resolved

    def is_fixed(self, position: int) -> bool:
        """Whether every interview sees the same options."""
        return self._asked[position].is_fixed

    def options(
        self,
        position: int,
        agent: tuple[Fields, int],
        scenario: Fields,
        records: Mapping[int, AnswerRecord],
        answers: Mapping[int, Any],
        ordinal: int,
    ) -> list[Any] | None:
        """The options that the question showed; None where it has none, or where the data does not fit it. `agent` is
        its row and its place; `records` and `answers` are those of the interview, by question.
        """
        context: Context = {"agent": named_agent(*agent, self._resolved), "scenario": scenario}
        for asked in self._asked[:position]:
            if (record := records.get(asked.position)) is not None:
                asked.put_answer(context, record, answers.get(asked.position))
        try:
            return self._asked[position].options(context, ordinal)
        except CannotRender:
            return None
