"""The survey: questions in order, and the rules that skip some of them. Covers: checking that they fit together.

Does not cover: whether agents and scenarios have the fields that texts name (plan.job).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.display import SHOWN_ROWS, first_of, html_table
from headrace.errors import SurveyError, nearest
from headrace.expressions import Expression, parse
from headrace.survey.questions import Question, question_from_dict
from headrace.survey.templates import Template
from headrace.survey.values import UnusableValue, decode_value, encode_value

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.plan.job import Job
    from headrace.results.results import Results

_DATA_ROOTS = ("agent", "scenario")


class Survey:
    """`Survey([question, ...])`. Rules are added with `add_skip_rule`, which returns the survey."""

    def __init__(self, questions: Iterable[Question]) -> None:
        if not isinstance(questions, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"A survey cannot be made of {questions!r}.", fix="Give a list of questions.")
        self.questions: tuple[Question, ...] = tuple(questions)  # bounded by what a person writes
        self._positions = _positions(self.questions)
        self.skip_rules: dict[str, Expression] = {}
        for question in self.questions:
            for place, name in self.names_in(question):
                self._check_name(question, place, name)

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def is_mapped(self) -> bool:
        """Whether it is one prompt per row, as `Job.map` makes it."""
        return self.questions[0].names_row

    def position(self, question: str | Question) -> int:
        """Where a question stands, or an error that names the nearest one."""
        name = question.question_name if isinstance(question, Question) else question
        if name not in self._positions:
            raise SurveyError(f"There is no question {name!r}.", fix=nearest(name, self._positions))
        return self._positions[name]

    def add_skip_rule(self, question: str | Question, expression: str) -> Survey:
        """Skip `question` where `expression` is true: `"{{ mood.answer }} == 'Bad' and agent.age < 30"`."""
        asked = self.questions[self.position(question)]
        rule = parse(expression)
        for name in rule.names:
            self._check_name(asked, "its skip rule", name)
        earlier = self.skip_rules.get(asked.question_name)
        both = rule if earlier is None else parse(f"({earlier.source}) or ({expression})")
        self.skip_rules[asked.question_name] = both
        return self

    def names_in(self, question: Question) -> Iterator[tuple[str, str]]:
        """Each name that a question's texts use, with the place it stands in."""
        for place, text in question.templates():
            where = "The prompt" if question.names_row else f"Question {question.question_name!r}, {place}"
            template = Template(text, where)
            names = sorted(template.names)
            yield from ((place, f"scenario.{name}" if question.names_row else name) for name in names)

    def data_names(self) -> Iterator[tuple[str, str, str]]:
        """Each `agent.x` and `scenario.x` that is asked for: (question, place, name)."""
        for question in self.questions:
            rule = self.skip_rules.get(question.question_name)
            rule_names = (("its skip rule", name) for name in sorted(rule.names)) if rule else iter(())
            for place, name in (*self.names_in(question), *rule_names):
                if name.partition(".")[0] in _DATA_ROOTS:
                    yield question.question_name, place, name

    def needs(self, question: Question) -> frozenset[int]:
        """The positions of the earlier questions whose answers this one uses, in its texts or in its rule."""
        rule = self.skip_rules.get(question.question_name)
        names = {name for _, name in self.names_in(question)}
        if rule is not None:
            names |= rule.names
        roots = {name.partition(".")[0] for name in names}
        return frozenset(self._positions[root] for root in roots if root in self._positions)

    def by(self, *what: Any) -> Job:
        """Ask this survey of agents, about scenarios, with models: `survey.by(agents).by(scenarios).by(model)`."""
        from headrace.plan.job import Job

        return Job(self).by(*what)

    def run(self, path: str | Path | None = None, **settings: Any) -> Results:
        """`self.by().run(...)`: with the model that HEADRACE_MODEL names, no agents and no scenarios."""
        return self.by().run(path, **settings)

    def copy(self) -> Survey:
        """A survey that later rules do not reach; a job keeps one."""
        twin = Survey(self.questions)
        twin.skip_rules = dict(self.skip_rules)
        return twin

    def to_row(self) -> bytes:
        rules = {name: rule.source for name, rule in sorted(self.skip_rules.items())}
        try:
            return encode_value({"questions": [question.to_dict() for question in self.questions], "skip": rules})
        except UnusableValue as error:
            raise SurveyError(f"The survey cannot be stored: {error.message}", fix=error.fix) from None

    @classmethod
    def from_row(cls, row: bytes | str) -> Survey:
        held = decode_value(row)
        survey = cls(question_from_dict(settings) for settings in held["questions"])
        for name, rule in held["skip"].items():
            survey.add_skip_rule(name, rule)
        return survey

    def __repr__(self) -> str:
        return f"Survey({', '.join(self._positions)})"

    def _repr_html_(self) -> str:
        shown = self.questions[:SHOWN_ROWS]
        rows = ((q.question_name, q.kind, q.question_text, _choices(q), self._rule_text(q)) for q in shown)
        columns = ("question", "kind", "text", "options", "skipped where")
        return html_table(columns, rows, first_of(len(shown), len(self), "question"))

    def _rule_text(self, question: Question) -> str:
        rule = self.skip_rules.get(question.question_name)
        return rule.source if rule is not None else ""

    def _check_name(self, asked: Question, place: str, name: str) -> None:
        root, _, rest = name.partition(".")
        where = f"Question {asked.question_name!r}, {place}"
        if root in _DATA_ROOTS:
            return
        if root not in self._positions:
            known = [*self._positions, *_DATA_ROOTS]
            raise SurveyError(
                f"{where}: there is nothing called {name!r}.",
                fix=f"Write {{{{ scenario.{root} }}}}, {{{{ agent.{root} }}}} or {{{{ a_question.answer }}}}. "
                + nearest(root, known),
            )
        if rest not in ("answer", "comment"):
            raise SurveyError(f"{where}: {name!r} is not known.", fix=f"Write {root}.answer or {root}.comment.")
        if self._positions[root] >= self._positions[asked.question_name]:
            raise SurveyError(f"{where}: {root!r} is not asked before it.", fix="Put it earlier in the survey.")


def _choices(question: Question) -> str:
    options = getattr(question, "question_options", None) or getattr(question, "options", ())
    return options if isinstance(options, str) else ", ".join(map(str, options))


def _positions(questions: tuple[Question, ...]) -> dict[str, int]:
    if not questions:
        raise SurveyError("The survey has no questions.", fix="Give at least one.")
    positions: dict[str, int] = {}
    seen: dict[str, str] = {}
    for position, question in enumerate(questions):
        if not isinstance(question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"{question!r} is not a question.", fix="Use QuestionFreeText(...) and its like.")
        name = question.question_name
        if name.lower() in seen:
            # Names become columns, and SQLite does not tell upper from lower case there.
            raise SurveyError(f"Two questions are called {seen[name.lower()]!r} and {name!r}.", fix="Rename one.")
        seen[name.lower()] = name
        positions[name] = position
    return positions
