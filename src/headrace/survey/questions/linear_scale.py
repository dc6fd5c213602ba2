"""A linear scale: one of a few whole numbers in a row, some of them with a label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import Options, Schema
from headrace.survey.questions.choices import ChoiceQuestion
from headrace.survey.questions.numerical import as_number


@dataclass(frozen=True, kw_only=True)
class QuestionLinearScale(ChoiceQuestion):
    kind = "linear_scale"

    option_labels: Mapping[Any, str] = field(default_factory=dict[Any, str])

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.option_labels, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(
                f"Question {self.question_name!r} has the labels {self.option_labels!r}.",
                fix='Give one by number, like {1: "Never", 5: "Always"}.',
            )
        # JSON, and so the run file, has only text for keys.
        labels = {str(point): label for point, label in self.option_labels.items()}
        object.__setattr__(self, "option_labels", labels)
        if not isinstance(self.options, str):
            for point in labels:
                if point not in map(str, self.options):
                    raise SurveyError(
                        f"Question {self.question_name!r} labels {point}, which is not on its scale.",
                        fix=f"Label some of {list(self.options)}.",
                    )

    def check_options(self, options: Options) -> None:
        super().check_options(options)
        if any(isinstance(point, bool) or not isinstance(point, int) for point in options):
            raise SurveyError(
                f"Question {self.question_name!r} has a scale with something else than whole numbers.",
                fix="Give whole numbers, like [1, 2, 3, 4, 5].",
            )

    def instructions(self, options: Options) -> str:
        points = "\n".join(f"{point}{self._label(point)}" for point in options)
        return f"Scale:\n{points}\n\nAnswer with exactly one number of this scale and nothing else."

    def schema(self, options: Options) -> Schema:
        return {"enum": list(options)}

    def accept(self, given: Any, options: Options) -> int:
        number = as_number(given)
        for point in options:
            if point == number:
                return point
        raise InvalidAnswer(f"{number} is not on the scale {list(options)}")

    def _label(self, point: int) -> str:
        label = self.option_labels.get(str(point))
        return f": {label}" if label else ""
