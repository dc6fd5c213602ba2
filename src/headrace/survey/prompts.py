"""Writes the prompts that a model gets: the persona, and each question's text with how to answer it.

Covers: compiling a survey's questions once, and writing a prompt from one interview's data.
Does not cover: when a question is asked (interviews.interview), or reading the reply (survey.replies).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from headrace.errors import SurveyError
from headrace.expressions import compile_closure, is_true
from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.people.agent_settings import PLAIN, SETTINGS, AgentSettings
from headrace.survey.questions import Question
from headrace.survey.questions.base import OWN_WORDS, Schema, has_own_words
from headrace.survey.survey import Survey
from headrace.survey.templates import CannotRender, Template, is_template
from headrace.survey.values import Fields

# What a text may name: "agent" and "scenario" with their fields, and each answered question with its "answer".
Context: TypeAlias = dict[str, dict[str, Any]]

_ONE_NAME = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_NOT_TRAITS = frozenset({NAME, INSTRUCTION, SETTINGS})
_PERSONA = "Answer the questions of a survey as the person described here would. Stay in character."


def persona(agent: Fields, settings: AgentSettings = PLAIN) -> str:
    """The system prompt of an agent: its instruction and its traits; none for an agent that has neither.

    A trait whose name begins with an underscore is not told. CannotRender where the agent's own template does not fit.
    """
    told = {name: value for name, value in agent.items() if name not in _NOT_TRAITS and name[:1] != "_"}
    traits = settings.traits_text(told)
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
        self._templates = _SettingTemplates(self.question)
        self._words = _OwnWords(self.question) if has_own_words(self.question) else None
        # Where only the text has templates, the question is the same in every interview.
        self._fixed: tuple[str, Schema] | None = None
        if not self._templates.are_any and self._words is None:
            self._fixed = self.question.closing(), self.question.schema()
        # The whole prompt, where nothing in it depends on the interview.
        self._static = self._text.source + self._fixed[0] if self._fixed and self._text.is_static else None

    def write(self, context: Context) -> tuple[str, Question]:
        """The prompt for one interview, and the question with its settings filled, which accepts the answer."""
        if self._static is not None:
            return self._static, self.question
        text = self._text.render(context["scenario"] if self._names_row else context)
        if self._fixed is not None:
            return text + self._fixed[0], self.question
        question = self._templates.filled(context)
        if self._words is not None:
            return self._words.prompt(question, text, context), question
        return text + question.closing(), question

    def derive(self, context: Context) -> Any:
        """The answer of a question that is not asked, from the answer its text names."""
        (needed,) = self._text.names
        return self.question.derive(context[needed.partition(".")[0]]["answer"])

    def schema(self, question: Question) -> Schema:
        """The JSON schema of an answer to the filled question; made once where it is the same in every interview."""
        return question.schema() if self._fixed is None else self._fixed[1]

    def specimen(self) -> str:
        """The prompt with its names unfilled: what all prompts of this question have in common."""
        return self._text.source + (self._fixed[0] if self._fixed else "")


class _OwnWords:
    """A question's `question_presentation` and `answering_instructions`, compiled once. They may name its settings."""

    def __init__(self, question: Question) -> None:
        self._compiled = {
            setting: Template(words, f"Question {question.question_name!r}, {setting}")
            for setting in OWN_WORDS
            if (words := getattr(question, setting)) is not None
        }

    def prompt(self, question: Question, text: str, context: Context) -> str:
        named: dict[str, Any] = {**context, **question.settings(), "question_text": text}
        written = {setting: words.render(named) for setting, words in self._compiled.items()}
        filled = dataclasses.replace(question, **written)
        return written.get("question_presentation", text) + filled.closing()


class _SettingTemplates:
    """The templates among a question's settings, its text apart, compiled once."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._compiled: dict[str, Template] = {}
        self._named: dict[str, Callable[[Context], Any]] = {}
        for place, text in question.templates():
            if place == "question_text" or place in OWN_WORDS:
                continue
            self._compiled[text] = Template(text, f"Question {question.question_name!r}, {place}")
            if match := _ONE_NAME.fullmatch(text.strip()):
                self._named[text] = name_getter(match[1])

    @property
    def are_any(self) -> bool:
        return bool(self._compiled)

    def filled(self, context: Context) -> Question:
        """The question for one interview; CannotRender where its settings do not fit."""
        try:
            return self._question.filled(_InterviewFilling(self._compiled, self._named, context))
        except SurveyError as error:
            raise CannotRender(error.message) from None


class _InterviewFilling:
    """Renders the templates of a question's settings with one interview's data."""

    def __init__(
        self, compiled: dict[str, Template], named: dict[str, Callable[[Context], Any]], context: Context
    ) -> None:
        self._compiled = compiled
        self._named = named
        self._context = context

    def text(self, template: str) -> str:
        compiled = self._compiled.get(template)
        return template if compiled is None else compiled.render(self._context)

    def value(self, template: str) -> Any:
        look_up = self._named.get(template)
        if look_up is None:
            return self.text(template)
        found = look_up(self._context)
        if isinstance(found, str) and is_template(found):  # data is no template, whatever it looks like
            raise CannotRender(f"{template} is a text, where a list or a number is needed")
        return found


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
