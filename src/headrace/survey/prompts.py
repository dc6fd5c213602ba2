"""Writes the prompts that a model gets: the persona, and each question's text with how to answer it.

Covers: compiling a survey's questions once, and writing a prompt from one interview's data.
Does not cover: when a question is asked (interviews.interview), or reading the reply (survey.replies).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from headrace.errors import SurveyError
from headrace.expressions import compile_closure, is_true
from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.questions import Question
from headrace.survey.questions.base import Options, Schema
from headrace.survey.survey import Survey
from headrace.survey.templates import CannotRender, Template
from headrace.survey.values import Fields

# What a text may name: "agent" and "scenario" with their fields, and each answered question with its "answer".
Context: TypeAlias = dict[str, dict[str, Any]]

_ONE_NAME = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_NOT_TRAITS = frozenset({NAME, INSTRUCTION})
_PERSONA = "Answer the questions of a survey as the person described here would. Stay in character."


def persona(agent: Fields) -> str:
    """The system prompt of an agent: its instruction and its traits; none for an agent that has neither."""
    traits = "\n".join([f"{name}: {value}" for name, value in agent.items() if name not in _NOT_TRAITS])
    instruction = agent.get(INSTRUCTION) or (_PERSONA if traits else "")
    return f"{instruction}\n\n{traits}" if traits else str(instruction)


class AskedQuestion:
    """One question of a survey, compiled."""

    def __init__(self, survey: Survey, position: int) -> None:
        self.question: Question = survey.questions[position]
        self.name = self.question.question_name
        self.position = position
        self.needs = survey.needs(self.question)
        self.skip = _skip_test(survey, self.name)
        self.is_conditional = bool(self.needs) or self.skip is not None
        self.is_derived = self.question.is_derived
        self._names_row = self.question.names_row
        self._text = Template(self.question.question_text, f"Question {self.name!r}")
        self._options = _options_writer(self.question)
        options = self.question.options
        fixed = not isinstance(options, str) and all(Template(o, "").is_static for o in options if isinstance(o, str))
        self._fixed: tuple[Options, str] | None = None
        if fixed:
            self._fixed = self._options({}), self._ending(self._options({}))
        self._schema = self.question.schema(self._fixed[0]) if self._fixed else None
        # The whole prompt, where nothing in it depends on the interview.
        self._static = self._text.source + self._fixed[1] if self._fixed and self._text.is_static else None

    def write(self, context: Context) -> tuple[str, Options]:
        """The prompt for one interview, and the options an answer is chosen from."""
        if self._fixed is not None:
            options, ending = self._fixed
            return self._static or self._text.render(self._named(context)) + ending, options
        options = self._options(context)
        return self._text.render(self._named(context)) + self._ending(options), options

    def derive(self, context: Context) -> Any:
        """The answer of a question that is not asked, from the answer its text names."""
        (needed,) = self._text.names
        return self.question.derive(context[needed.partition(".")[0]]["answer"])

    def schema(self, options: Options) -> Schema:
        """The JSON schema of an answer; made once where the options are fixed."""
        return self.question.schema(options) if self._schema is None else self._schema

    def specimen(self) -> str:
        """The prompt with its names unfilled: what all prompts of this question have in common."""
        return self._text.source + (self._fixed[1] if self._fixed else "")

    def _named(self, context: Context) -> Context:
        return context["scenario"] if self._names_row else context

    def _ending(self, options: Options) -> str:
        instructions = self.question.instructions(options)
        return f"\n\n{instructions}" if instructions else ""


def _options_writer(question: Question) -> Callable[[Context], Options]:
    options = question.options
    where = f"Question {question.question_name!r}, question_options"
    if isinstance(options, str):
        return _named_list(question, options, where)
    templates = [Template(option, where) if isinstance(option, str) else option for option in options]
    if all(not isinstance(template, Template) or template.is_static for template in templates):
        return lambda _: options

    def written(context: Context) -> Options:
        filled = tuple(t.render(context) if isinstance(t, Template) else t for t in templates)
        return _checked(question, filled)

    return written


def _named_list(question: Question, template: str, where: str) -> Callable[[Context], Options]:
    match = _ONE_NAME.fullmatch(template.strip())
    if match is None:
        raise SurveyError(f"{where}: {template!r} does not name one list.", fix='Write "{{ scenario.brands }}".')
    look_up = name_getter(match[1])

    def found(context: Context) -> Options:
        value = look_up(context)
        if not isinstance(value, list):
            raise CannotRender(f"{match[1]} is not a list of options")
        return _checked(question, tuple(cast("list[Any]", value)))

    return found


def _checked(question: Question, options: Options) -> Options:
    try:
        question.check_options(options)
    except SurveyError as error:
        raise CannotRender(error.message) from None
    return options


def _skip_test(survey: Survey, name: str) -> Callable[[Context], bool] | None:
    rule = survey.skip_rules.get(name)
    if rule is None:
        return None
    closure = compile_closure(rule, name_getter)
    return lambda context: is_true(closure(context))


def name_getter(name: str) -> Callable[[Context], Any]:
    """Look a dotted name up in a context; None where the data has no such field."""
    root, _, field = name.partition(".")
    if not field:
        return lambda context: context.get(root)
    return lambda context: context.get(root, {}).get(field)
