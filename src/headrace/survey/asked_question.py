"""Writes the prompt of one question in one interview: its text, with how to answer it.

Covers: compiling a survey's questions once, filling their templates, and what later questions may name of them.
Does not cover: when a question is asked (interviews.interview), the persona (survey.prompts), or reading the reply
(survey.replies).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.errors import SurveyError
from headrace.survey.files.marks import NO_FILES, BrokenMark, PromptFiles, has_marks, split, words_of
from headrace.survey.flow.used_names import names_in, shown_by
from headrace.survey.names import Aliases, Context, name_getter
from headrace.survey.questions import Question
from headrace.survey.questions.base import OWN_WORDS, Derivation, Schema, has_own_words
from headrace.survey.record import AnswerRecord, AnswerState
from headrace.survey.survey import Survey
from headrace.survey.templates import CannotRender, Template, is_template
from headrace.survey.wording.instruction import in_words
from headrace.survey.wording.option_order import orders_of
from headrace.survey.wording.remembering import memory_line, recalled

_ANSWERED = AnswerState.ANSWERED  # looking a member up in its enum costs more than using it
_ONE_NAME = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


def asked_questions(survey: Survey) -> list[AskedQuestion]:
    """Every question of a survey, compiled; as many as a person writes."""
    asked = [AskedQuestion(survey, position) for position in range(len(survey))]
    for each in asked:
        each.shows = tuple(asked[position] for position in sorted(shown_by(survey, each.question)))
        each.remembers = tuple(asked[position] for position in survey.remembered_by(each.question))
        for shown in each.shows:
            shown.is_shown = True
        for remembered in each.remembers:
            remembered.is_remembered = True
    for each in asked:
        each.settle()
    return asked


class AskedQuestion:
    """One question of a survey, compiled. `shows` are those whose text or options its own text shows, `remembers` those
    that its prompt repeats with their answers.
    """

    def __init__(self, survey: Survey, position: int) -> None:
        self.question: Question = survey.questions[position]
        self.name = self.question.question_name
        self.position = position
        self.has_comment = self.question.has_comment
        self.is_derived = self.question.is_derived
        self.is_shown = self.is_remembered = False
        self.shows: tuple[AskedQuestion, ...] = ()
        self.remembers: tuple[AskedQuestion, ...] = ()
        self._wording = survey.wording
        self._names_row = self.question.names_row
        self._text = Template(self.question.question_text, f"Question {self.name!r}")
        self._names_whole_row = self._names_row and any(
            name.partition(".")[0] == "scenario" for name in self._text.names
        )
        self._templates = _SettingTemplates(self.question, survey)
        self._told = Template(in_words(survey.told_to(self.question)), f"Question {self.name!r}, an instruction")
        randomizing = survey.randomizing
        self._seed = randomizing.seed
        self._orders = tuple(orders_of(self.question, randomizing))
        self._words = _OwnWords(self.question) if has_own_words(self.question) else None
        self._aliases = Aliases((name for _, name in names_in(survey, self.question)), survey.resolved)
        # Where only the text has templates, the question is the same in every interview.
        self._fixed: tuple[str, Schema] | None = None
        if not self._templates.are_any and self._words is None and not self._orders:
            self._fixed = self.question.closing(), self.question.schema()
        # What stands before and behind the text, where the text is all that depends on the interview.
        self._frame: tuple[str, str] | None = None
        # The whole prompt, where nothing in it depends on the interview.
        self._static: str | None = None
        if self._fixed and self._text.is_static and self._told.is_static:
            self._static = self._told.source + self._text.source + self._fixed[0]

    def settle(self) -> None:
        """Choose the short way of writing, now that it is known what other questions want of this one."""
        is_alone = not (self.shows or self.remembers or self.is_shown or self.is_remembered)
        if is_alone and self._fixed and self._told.is_static and not self._aliases and not self._names_row:
            self._frame = self._told.source, self._fixed[0]

    def write(self, context: Context, ordinal: int = 0) -> tuple[str, Question, PromptFiles]:
        """The prompt for one interview, the question with its settings filled, which accepts the answer, and the files
        that stand in the prompt.
        """
        if self._frame is not None:
            before, after = self._frame
            prompt, question = before + self._text.render(context) + after, self.question
        elif self._static is not None:
            prompt, question = self._static, self.question
        else:
            prompt, question = self._written(context, ordinal)
        if self.remembers:
            prompt = recalled([each._line(context, ordinal) for each in self.remembers], self._wording) + prompt
        if not has_marks(prompt):
            return prompt, question, NO_FILES
        try:
            words, files = split(prompt)
        except BrokenMark:
            raise CannotRender("a file stands where only text can: print it by itself, like {{ photo }}") from None
        return words, question, files

    def put_answer(self, context: Context, record: AnswerRecord, answer: Any) -> None:
        """Let later texts, rules and memories name this question's answer."""
        if not self.is_shown and not self.is_remembered:
            context[self.name] = {"answer": answer, "comment": record.comment}
            return
        entry = context.setdefault(self.name, {})
        entry.update(answer=answer, comment=record.comment, is_answered=record.state is _ANSWERED)

    def derive(self, context: Context, ordinal: int) -> Any:
        """The answer of a question that is not asked, in the interview with this number."""
        return self.question.derive(Derivation(context, ordinal, self._seed, partial(self._in_words, ordinal=ordinal)))

    def filled(self, context: Context, ordinal: int) -> Question:
        """The question with its text and its other settings filled: what an agent's own function gets."""
        text, question = self._in_words(context, ordinal)
        return dataclasses.replace(question, question_text=text) if text != question.question_text else question

    @property
    def is_fixed(self) -> bool:
        """Whether its settings, the text apart, are the same in every interview."""
        return self._fixed is not None

    def options(self, context: Context, ordinal: int) -> list[Any] | None:
        """The options that an interview sees, in the order shown; None where it has none."""
        # Fixed options need no data: not even what the text names, which a column of options does not read.
        return _options(self.question if self.is_fixed else self._filled(context, ordinal)[1])

    def schema(self, question: Question) -> Schema:
        """The JSON schema of an answer to the filled question; made once where it is the same in every interview."""
        return question.schema() if self._fixed is None else self._fixed[1]

    def specimen(self) -> str:
        """The prompt with its names unfilled: what all prompts of this question have in common."""
        return self._told.source + self._text.source + (self._fixed[0] if self._fixed else "")

    def _written(self, context: Context, ordinal: int) -> tuple[str, Question]:
        text, question = self._filled(context, ordinal)
        names = self._aliases.added(context) if self._aliases else context
        told = self._told.render(names)
        if self._fixed is not None:
            return told + text + self._fixed[0], question
        if self._words is not None:
            return told + self._words.prompt(question, text, names), question
        return told + text + question.closing(), question

    def _in_words(self, context: Context, ordinal: int) -> tuple[str, Question]:
        """What `_filled` gives, with files in words: for what is no prompt."""
        text, question = self._filled(context, ordinal)
        return words_of(text), question

    def _row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a text that names a row's columns knows: also the row, for `scenario["Review Text"]`."""
        return {**row, "scenario": row} if self._names_whole_row and "scenario" not in row else row

    def _filled(self, context: Context, ordinal: int) -> tuple[str, Question]:
        """The rendered text, and the question with its other settings filled, as this interview sees it."""
        for shown in self.shows:
            shown._present(context, ordinal)
        names = self._aliases.added(context) if self._aliases else context
        text = self._text.render(self._row(context["scenario"]) if self._names_row else names)
        question = self.question if self._fixed is not None else self._templates.filled(names, context)
        for order in self._orders:
            question = order.applied(question, ordinal)
        if self.is_shown:
            context.setdefault(self.name, {}).update(_parts_shown(words_of(text), question))
        elif self.is_remembered:
            context.setdefault(self.name, {})["question_text"] = words_of(text)  # a file is sent once, not remembered
        return text, question

    def _present(self, context: Context, ordinal: int) -> None:
        """Let later texts name this question's own text and options: as it was asked, or would have been."""
        if "question_text" not in context.get(self.name, ()):
            self._filled(context, ordinal)

    def _line(self, context: Context, ordinal: int) -> str:
        """This question as a later prompt remembers it; empty where it has no answer."""
        entry = context.get(self.name)
        if entry is None or not entry.get("is_answered"):
            return ""
        if "memory" not in entry:
            if not self._text.is_static:
                self._present(context, ordinal)  # an answer that was journaled before this process began
            entry["memory"] = memory_line(entry.get("question_text", self._text.source), entry["answer"])
        return entry["memory"]


def _parts_shown(text: str, question: Question) -> dict[str, Any]:
    return {"question_text": text, "question_options": _options(question) or []}


def _options(question: Question) -> list[Any] | None:
    options = getattr(question, "options", None) or getattr(question, "question_options", None)
    return list(options) if options else None


class _OwnWords:
    """A question's `question_presentation` and `answering_instructions`, compiled once. They may name its settings."""

    def __init__(self, question: Question) -> None:
        self._compiled = {
            setting: Template(words, f"Question {question.question_name!r}, {setting}")
            for setting in OWN_WORDS
            if (words := getattr(question, setting)) is not None
        }

    def prompt(self, question: Question, text: str, names: dict[str, Any]) -> str:
        named: dict[str, Any] = {**names, **question.settings(), "question_text": text}
        written = {setting: words.render(named) for setting, words in self._compiled.items()}
        filled = dataclasses.replace(question, **written)
        return written.get("question_presentation", text) + filled.closing()


class _SettingTemplates:
    """The templates among a question's settings, its text apart, compiled once."""

    def __init__(self, question: Question, survey: Survey) -> None:
        self._question = question
        self._compiled: dict[str, Template] = {}
        self._named: dict[str, Callable[[Context], Any]] = {}
        for place, text in question.templates():
            if place == "question_text" or place in OWN_WORDS:
                continue
            self._compiled[text] = Template(text, f"Question {question.question_name!r}, {place}")
            if match := _ONE_NAME.fullmatch(text.strip()):
                self._named[text] = name_getter(match[1], survey.resolved)

    @property
    def are_any(self) -> bool:
        return bool(self._compiled)

    def filled(self, names: dict[str, Any], context: Context) -> Question:
        """The question for one interview, whose data is `context`, with bare names in `names`; CannotRender where its
        settings do not fit.
        """
        try:
            return self._question.filled(_InterviewFilling(self._compiled, self._named, names, context))
        except SurveyError as error:
            raise CannotRender(error.message) from None


class _InterviewFilling:
    """Renders the templates of a question's settings with one interview's data."""

    def __init__(
        self,
        compiled: dict[str, Template],
        named: dict[str, Callable[[Context], Any]],
        names: dict[str, Any],
        context: Context,
    ) -> None:
        self._compiled = compiled
        self._named = named
        self._names = names
        self._context = context

    def text(self, template: str) -> str:
        compiled = self._compiled.get(template)
        text = template if compiled is None else compiled.render(self._names)
        if has_marks(text):
            raise CannotRender("a file can stand in a question's text, not in its options or other settings")
        return text

    def value(self, template: str) -> Any:
        look_up = self._named.get(template)
        found = None if look_up is None else look_up(self._context)
        if found is None:
            compiled = self._compiled.get(template)
            found = template if compiled is None else compiled.value(self._names)
        if isinstance(found, str) and is_template(found):  # data is no template, whatever it looks like
            raise CannotRender(f"{template} is a text, where a list or a number is needed")
        return found
