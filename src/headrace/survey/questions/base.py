"""A question has a name, a text, and an answer with a schema. Covers: the contract of a kind.

A kind says how to answer (`instructions`), the JSON schema of its answer (`schema`) and how an answer is accepted
(`accept`). Kinds register themselves by being defined (survey.questions.kinds).

Every setting may hold templates. `filled` returns the question with these rendered: with the data of one interview, or
with a scenario that makes one question of many (`loop`). The three methods above are called on a question that is
filled, so they speak of its own settings alone.
Does not cover: filling a question once per scenario (survey.questions.looping).
"""

from __future__ import annotations

import dataclasses
import keyword
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.stand_ins import HostedVerbs
from headrace.survey.model import Model, from_reference, to_reference
from headrace.survey.model_text import model_from_text
from headrace.survey.questions.kinds import KindOfQuestion, kind_named, kinds_by_name, split_kind
from headrace.survey.repair.json_texts import LONGEST_REPAIRED, json_in
from headrace.survey.replies import NoAnswer, read_cut, read_reply, readings
from headrace.survey.templates import is_template
from headrace.survey.values import decode_value, encode_value

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.plan.job import Job
    from headrace.results.asked.prompt_table import PromptTable
    from headrace.results.results import Results
    from headrace.survey.survey import Survey

Schema: TypeAlias = dict[str, Any]
Options: TypeAlias = tuple[Any, ...]

# Settings whose templates are always texts, never the value that one name stands for.
_TEXTS = frozenset({"question_name", "question_text", "answering_instructions", "question_presentation"})
# What a user may say in place of a kind's own words; these may name the question's settings: {{ question_text }}.
OWN_WORDS = ("question_presentation", "answering_instructions")
# Settings with a default that run files held before others with a default came: a survey's digest must stay the same.
_STORED_AT_DEFAULT = frozenset({"max_value", "min_value", "option_labels", "output_schema", "value_type"})
_COMMENT = "Put the answer alone on the first line; you may add a comment on the next."
_RESERVED = frozenset({"agent", "scenario", "answer", "model", "iteration", "interview", "self", "loop"})
_CONSTANTS = frozenset({"true", "false", "none", "null"})  # of templates, rules or SQL


class Filling(Protocol):
    """Renders templates with somebody's data."""

    def text(self, template: str) -> str: ...

    def value(self, template: str) -> Any:
        """The value that a template of one name stands for: a list, a number; else its text."""
        ...


class Derivation(NamedTuple):
    """What the answer to a question that is never asked is made from.

    `context` has "agent" and "scenario" with their fields, and each earlier question that its settings name with its
    "answer". `ordinal` is the interview's number in the plan, `seed` the survey's: together they make a random answer
    the same in every run. `fill` renders the question's text and its other settings.
    """

    context: dict[str, dict[str, Any]]
    ordinal: int
    seed: int
    fill: Callable[[dict[str, dict[str, Any]]], tuple[str, Question]]


def as_example(**settings: Any) -> Mapping[str, Any]:
    """The settings of a kind's `.example()`."""
    return settings


@dataclass(frozen=True, kw_only=True)
class Question(HostedVerbs, metaclass=KindOfQuestion):
    """`Question("free_text", question_name="q", question_text="...")` makes a question by its kind.

    `answering_instructions` takes the place of the kind's own words on how to answer, `question_presentation` of the
    question's text with its options. Both may name the question's settings: `{{ question_text }}`. `model` answers this
    question in place of the job's models.
    """

    question_name: str
    question_text: str
    answering_instructions: str | None = None
    question_presentation: str | None = None
    model: Model | None = None

    kind: ClassVar[str]
    question_type: ClassVar[str]
    example_settings: ClassVar[Mapping[str, Any]] = as_example(
        question_name="weekend", question_text="What did you do last weekend?"
    )
    is_made_by_jobs: ClassVar[bool] = False  # by Job.map only
    literal_settings: ClassVar[frozenset[str]] = frozenset()  # whose texts are no templates
    function_settings: ClassVar[frozenset[str]] = frozenset()  # stored as references, and given by the program

    def __post_init__(self) -> None:
        if not self._is_named_by_template:
            self.check_name()
        _check_text(self.question_name, "text", self.question_text)
        for setting in OWN_WORDS:
            if (words := getattr(self, setting)) is not None:
                _check_text(self.question_name, setting, words)
        if self.model is not None and not isinstance(self.model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(
                f"Question {self.question_name!r} has {self.model!r} for its model.", fix='Give Model("...").'
            )

    @classmethod
    def example(cls, kind: str | None = None, **settings: Any) -> Self:
        """A question of this kind, or of the kind named, to try things with."""
        made: Any = cls if kind is None else kind_named(kind)
        return made(**{**made.example_settings, **settings})

    @staticmethod
    def available() -> dict[str, str]:
        """The kinds of questions, with the name of each one's class."""
        return {kind.kind: kind.__name__ for kind in kinds_for_files()}

    def check_name(self) -> None:
        """Whether the name may stand in a survey; a template as a name is for `loop`."""
        _check_name(self.question_name)

    @property
    def name(self) -> str:
        return self.question_name

    @property
    def _is_named_by_template(self) -> bool:
        return "question_name" not in self.literal_settings and is_template(str(self.question_name))

    @property
    def names_row(self) -> bool:
        """Whether its text names a scenario's fields by themselves, `{{ city }}` and not `{{ scenario.city }}`."""
        return False

    @property
    def holds_bools(self) -> bool:
        """Whether every answer is a bool, so that its column may hold 0 and 1."""
        return False

    @property
    def pinned_items(self) -> Sequence[Any] | None:
        """The `question_items` that keep their place while the others are shown in random order; None: all do."""
        return None

    @property
    def has_comment(self) -> bool:
        """Whether the model is asked for a comment beside its answer."""
        return False

    def listing(self) -> str:
        """What the prompt shows below the question's text: options, a scale; nothing for most kinds."""
        return ""

    @abstractmethod
    def instructions(self) -> str:
        """How to answer, in words; the last part of the prompt."""

    def closing(self) -> str:
        """The prompt below the question's text: what there is to choose from, and how to answer."""
        listing = "" if self.question_presentation is not None else self.listing()
        instructions = self.answering_instructions
        if instructions is None:
            instructions = self.instructions()
            if self.has_comment and instructions:
                instructions = f"{instructions}\n{_COMMENT}"
        return "".join(f"\n\n{part}" for part in (listing, instructions) if part)

    @abstractmethod
    def schema(self) -> Schema:
        """The JSON schema of an accepted answer."""

    def read(self, text: str) -> tuple[Any, str | None]:
        """The given answer and a comment, out of what a model wrote; NoAnswer where there is none."""
        return read_reply(text)

    def read_cut(self, text: str) -> tuple[Any, str | None] | None:
        """As `read`, of a reply that was cut off: None unless all that is missing is the end of a comment."""
        del text
        return None

    def derive(self, given: Derivation) -> Any:
        """The answer of a kind that is never asked (`is_derived`), or CannotRender where the data gives none."""
        raise NotImplementedError

    @property
    def is_derived(self) -> bool:
        return type(self).derive is not Question.derive

    @abstractmethod
    def accept(self, given: Any) -> Any:
        """The answer in its own type, or InvalidAnswer. `given` is text, or the JSON value a model sent."""

    @property
    def functions(self) -> dict[str, Any]:
        """The settings that are functions. They are not stored: each program gives its own."""
        return {name: getattr(self, name) for name in self.function_settings}

    def templates(self) -> Iterator[tuple[str, str]]:
        """Each template among its settings, with the place it stands in, for error messages."""
        for name, value in self.settings().items():
            if name not in self.literal_settings:
                yield from ((name, text) for text in _texts(value) if is_template(text))

    def filled(self, filling: Filling) -> Self:
        """This question with the templates among its settings rendered; the same one where it has none."""
        changed: dict[str, Any] = {}
        for name, value in self.settings().items():
            if name not in self.literal_settings:
                new = _filled(value, filling, as_text=name in _TEXTS)
                if new is not value:
                    changed[name] = new
        return dataclasses.replace(self, **changed) if changed else self

    def loop(self, scenarios: Iterable[Mapping[str, Any]]) -> list[Self]:
        """One question per scenario, its templates filled with that scenario's fields where it has them.

        Questions are told apart by their names: a template, `"liking_{{ scenario.brand }}"`, else numbered from 0.
        """
        from headrace.survey.questions.looping import looped

        return looped(self, scenarios)

    def to_survey(self) -> Survey:
        """A survey of this question alone."""
        from headrace.survey.survey import Survey

        return Survey([self])

    def by(self, *what: Any) -> Job:
        """Ask this question of agents, about scenarios, with models: `question.by(agents).by(model)`."""
        return self.to_survey().by(*what)

    def run(self, path: str | Path | None = None, **settings: Any) -> Results:
        """`self.by().run(...)`: with the model that HEADRACE_MODEL names, no agents and no scenarios."""
        return self.by().run(path, **settings)

    def prompts(self) -> PromptTable:
        """Its prompt, without running anything; see `Job.prompts`."""
        return self.to_survey().prompts()

    def show_prompts(self, all: bool = False) -> None:
        """Print its prompt; `all=True` with every column."""
        self.to_survey().show_prompts(all=all)

    def to_dict(self) -> dict[str, Any]:
        """The kind and the settings, as a run file holds them: without those that are left at their default."""
        kept = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if self._is_kept(field)}
        if self.model is not None:
            kept["model"] = decode_value(self.model.to_row())
        for name in self.function_settings:
            kept[name] = to_reference(getattr(self, name))
        return {"kind": self.kind, **kept}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`."""
        return cast("Self", question_from_dict(dict(settings)))

    def _is_kept(self, field: dataclasses.Field[Any]) -> bool:
        if field.name in _STORED_AT_DEFAULT:
            return True
        made = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        return made is dataclasses.MISSING or made != getattr(self, field.name)

    def settings(self) -> dict[str, Any]:
        """Its settings by name, as a text may name them: plain data, so without its model."""
        hidden = self.function_settings | {"model"}
        names = (field.name for field in dataclasses.fields(self) if field.name not in hidden)
        return {name: _as_plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, kw_only=True)
class CommentedQuestion(Question):
    """A question whose answer is short, so that the model may add why. `include_comment=False` asks for none."""

    include_comment: bool = True

    answer_spans_lines: ClassVar[bool] = False  # or may: a list with one item a line

    @property
    def has_comment(self) -> bool:
        return self.include_comment

    def read(self, text: str) -> tuple[Any, str | None]:
        """As for every question; in plain text, the first reading that can be accepted, and what follows it."""
        given, comment = read_reply(text)
        if isinstance(given, str) and len(given) > LONGEST_REPAIRED:
            raise NoAnswer(f"a text of {len(given):,} letters is no short answer")
        if not isinstance(given, str) or comment is not None:
            return given, comment
        if "{" in given and (envelope := json_in(given, dict)) is not None and "answer" in envelope.value:
            return envelope.value["answer"], envelope.value.get("comment") or envelope.comment
        if "\n" in given:
            for answer, rest in readings(given, spans_lines=self.answer_spans_lines):
                if self._accepts(answer):
                    return answer, rest
        return given, None

    def read_cut(self, text: str) -> tuple[Any, str | None] | None:
        return read_cut(text, spans_lines=self.answer_spans_lines)

    def _accepts(self, given: Any) -> bool:
        try:
            self.accept(given)
        except InvalidAnswer:
            return False
        return True


def has_own_words(question: Question) -> bool:
    """Whether the user wrote words in place of the kind's own."""
    return any(getattr(question, setting) is not None for setting in OWN_WORDS)


def kinds_for_files() -> list[type[Question]]:
    """The kinds that a person may write in a survey file, by name."""
    return [kind for kind in cast("list[type[Question]]", kinds_by_name()) if not kind.is_made_by_jobs]


def question_from_dict(settings: dict[str, Any], functions: Mapping[str, Any] | None = None) -> Question:
    """Make a question from its settings, as a run file or a survey file holds them. A function that is not among
    `functions` stays a `MissingFunction`.
    """
    kind, given = split_kind(settings)
    for name in cast("type[Question]", kind).function_settings & given.keys():
        given[name] = from_reference(given[name], (functions or {}).get(name))
    if "model" in given:
        given["model"] = _model_from(given["model"])
    return cast(Any, kind)(**given)


def _model_from(held: Any) -> Any:
    """A question's own model: as a run file holds it, or as a person writes it, `gpt-4o,temperature=0.2`."""
    if isinstance(held, str):
        return model_from_text(held, "model")
    if not isinstance(held, dict):
        return held
    settings = cast(Schema, held)
    return Model.from_dict(settings) if "model" in settings else Model.from_row(encode_value(settings))


def _as_plain(value: Any) -> Any:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


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


def _check_text(question_name: str, what: str, text: object) -> None:
    if text is None:
        raise SurveyError(f"Question {question_name!r} has no {what}: it is None.", fix="Give it a text.")
    if not isinstance(text, str):
        raise SurveyError(f"Question {question_name!r} has {text!r} for its {what}.", fix="Put it in quotes.")
    if what == "text" and not text.strip():
        raise SurveyError(f"Question {question_name!r} has no text.", fix="Give it a question_text.")


def _check_name(name: object) -> None:
    if isinstance(name, str) and is_template(name):
        raise SurveyError(
            f"The question name {name!r} is a template.", fix="Make questions of it first: question.loop(scenarios)."
        )
    if isinstance(name, str) and keyword.iskeyword(name):
        raise SurveyError(f"A question cannot be called {name!r}.", fix="That is a word of the language of rules.")
    if not isinstance(name, str) or not name.isidentifier():
        raise SurveyError(
            f"The question name {name!r} is not an identifier.",
            fix="Use letters, digits and underscores, not beginning with a digit: it names a column and a variable.",
        )
    if name.lower() in _RESERVED | _CONSTANTS or name.startswith("__"):
        raise SurveyError(f"A question cannot be called {name!r}.", fix="That name stands for something else in texts.")
