"""A question has a name, a text, and an answer with a schema. Covers: the contract of a kind.

A kind says how to answer (`instructions`), the JSON schema of its answer (`schema`) and how an answer is accepted
(`accept`). Kinds register themselves by being defined.

Every setting may hold templates. `filled` returns the question with these rendered: with the data of one interview, or
with a scenario that makes one question of many (`loop`). The three methods above are called on a question that is
filled, so they speak of its own settings alone.
"""

from __future__ import annotations

import dataclasses
import keyword
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, cast

from headrace.errors import SurveyError, nearest
from headrace.survey.replies import read_reply
from headrace.survey.templates import is_template

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.plan.job import Job
    from headrace.results.results import Results

Schema: TypeAlias = dict[str, Any]
Options: TypeAlias = tuple[Any, ...]

# Settings whose templates are always texts, never the value that one name stands for.
_TEXTS = frozenset({"question_name", "question_text", "answering_instructions", "question_presentation"})
_kinds: dict[str, type[Question]] = {}
_RESERVED = frozenset({"agent", "scenario", "answer", "model", "iteration", "interview", "self", "loop"})
_CONSTANTS = frozenset({"true", "false", "none", "null"})  # of templates, rules or SQL


class Filling(Protocol):
    """Renders templates with somebody's data."""

    def text(self, template: str) -> str: ...

    def value(self, template: str) -> Any:
        """The value that a template of one name stands for: a list, a number; else its text."""
        ...


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    question_name: str
    question_text: str

    kind: ClassVar[str]
    is_made_by_jobs: ClassVar[bool] = False  # by Job.map only
    literal_settings: ClassVar[frozenset[str]] = frozenset()  # whose texts are no templates

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            _kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        self.check_name()
        text = self.question_text
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"Question {self.question_name!r} has {text!r} for a text.", fix="Put it in quotes.")
        if not text.strip():
            raise SurveyError(f"Question {self.question_name!r} has no text.", fix="Give it a question_text.")

    def check_name(self) -> None:
        _check_name(self.question_name)

    @property
    def names_row(self) -> bool:
        """Whether its text names a scenario's fields by themselves, `{{ city }}` and not `{{ scenario.city }}`."""
        return False

    @property
    def holds_bools(self) -> bool:
        """Whether every answer is a bool, so that its column may hold 0 and 1."""
        return False

    @abstractmethod
    def instructions(self) -> str:
        """How to answer, in words; follows the question's text in the prompt."""

    @abstractmethod
    def schema(self) -> Schema:
        """The JSON schema of an accepted answer."""

    def read(self, text: str) -> tuple[Any, str | None]:
        """The given answer and a comment, out of what a model wrote; NoAnswer where there is none."""
        return read_reply(text)

    def derive(self, answer: Any) -> Any:
        """The answer, taken from the one answer its text names. For kinds that are never asked (`is_derived`)."""
        raise NotImplementedError

    @property
    def is_derived(self) -> bool:
        return type(self).derive is not Question.derive

    @abstractmethod
    def accept(self, given: Any) -> Any:
        """The answer in its own type, or InvalidAnswer. `given` is text, or the JSON value a model sent."""

    def templates(self) -> Iterator[tuple[str, str]]:
        """Each template among its settings, with the place it stands in, for error messages."""
        for name, value in self._settings():
            if name not in self.literal_settings:
                yield from ((name, text) for text in _texts(value) if is_template(text))

    def filled(self, filling: Filling) -> Self:
        """This question with the templates among its settings rendered; the same one where it has none."""
        changed: dict[str, Any] = {}
        for name, value in self._settings():
            if name not in self.literal_settings:
                new = _filled(value, filling, as_text=name in _TEXTS)
                if new is not value:
                    changed[name] = new
        return dataclasses.replace(self, **changed) if changed else self

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **dict(self._settings())}

    def by(self, *what: Any) -> Job:
        """A job that asks this question alone: `question.by(agents).by(model)`."""
        from headrace.survey.survey import Survey  # which is made of questions

        return Survey([self]).by(*what)

    def run(self, path: str | Path | None = None, **settings: Any) -> Results:
        """`self.by().run(...)`: with the model that HEADRACE_MODEL names, no agents and no scenarios."""
        return self.by().run(path, **settings)

    def _settings(self) -> Iterator[tuple[str, Any]]:
        return ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))


def kinds_for_files() -> list[type[Question]]:
    """The kinds that a person may write in a survey file, by name."""
    return [_kinds[name] for name in sorted(_kinds) if not _kinds[name].is_made_by_jobs]


def question_from_dict(settings: dict[str, Any]) -> Question:
    """Make a question from its settings, as a run file or a survey file holds them."""
    given = dict(settings)
    kind = given.pop("kind", None)
    if kind not in _kinds:
        raise SurveyError(f"There is no kind of question called {kind!r}.", fix=nearest(str(kind), _kinds))
    fields = {field.name: field for field in dataclasses.fields(_kinds[kind])}
    for name in given:
        if name not in fields:
            raise SurveyError(f"A {kind} question has no setting {name!r}.", fix=nearest(name, fields))
    for name, field in fields.items():
        is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if is_required and name not in given:
            raise SurveyError(f"A {kind} question needs {name!r}.", fix="Add it.")
    return _kinds[kind](**given)


def _texts(value: Any) -> Iterator[str]:
    """The texts in a setting, at any depth."""
    match value:
        case str():
            yield value
        case list() | tuple():
            for item in cast("list[Any]", value):
                yield from _texts(item)
        case Mapping():
            for key, item in cast("Mapping[Any, Any]", value).items():
                yield from _texts(key)
                yield from _texts(item)
        case _:
            pass


def _filled(value: Any, filling: Filling, *, as_text: bool) -> Any:
    """The setting with its templates rendered; the same object where it has none."""
    if not any(map(is_template, _texts(value))):
        return value
    if isinstance(value, str):
        return filling.text(value) if as_text else filling.value(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {_filled(key, filling, as_text=True): _filled(item, filling, as_text=True) for key, item in items}
    return [_filled(item, filling, as_text=True) for item in cast("list[Any]", value)]


def _check_name(name: object) -> None:
    if isinstance(name, str) and keyword.iskeyword(name):
        raise SurveyError(f"A question cannot be called {name!r}.", fix="That is a word of the language of rules.")
    if not isinstance(name, str) or not name.isidentifier():
        raise SurveyError(
            f"The question name {name!r} is not an identifier.",
            fix="Use letters, digits and underscores, not beginning with a digit: it names a column and a variable.",
        )
    if name.lower() in _RESERVED | _CONSTANTS or name.startswith("__"):
        raise SurveyError(f"A question cannot be called {name!r}.", fix="That name stands for something else in texts.")
