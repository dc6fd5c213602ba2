"""The survey: questions in order, and the rules, memories and instructions between them. Covers: putting it together.

Does not cover: the names that its texts and rules use (survey.flow.used_names), what the rules mean for one interview
(survey.flow.route), its stored form (survey.stored_survey), or the fields that texts name (plan.fitting).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import msgspec

from headrace.display import SHOWN_ROWS, first_of, html_table
from headrace.errors import Spelled, SurveyError, nearest
from headrace.expressions import Expression, parse
from headrace.stand_ins import HostedVerbs
from headrace.survey.flow.drawing import FlowDrawing
from headrace.survey.flow.groups import Groups, spans, with_group, without_member
from headrace.survey.flow.rules import (
    EndOfSurvey,
    EndOfSurveyType,
    Rule,
    is_end,
    with_answer,
    without_question,
)
from headrace.survey.flow.used_names import check_names, check_rule, check_skip_rule
from headrace.survey.names import Context, ResolvedNames, name_getter
from headrace.survey.questions import Question
from headrace.survey.scenario import Scenario
from headrace.survey.stored_survey import survey_from_row, survey_to_row
from headrace.survey.wording.instruction import (
    ChangeInstruction,
    Instruction,
    Instructions,
    check_instructions,
    moved,
    told_at,
)
from headrace.survey.wording.option_order import Randomizing
from headrace.survey.wording.own_wording import OURS
from headrace.survey.wording.remembering import Memory, with_memories, without_memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.plan.job import Job
    from headrace.plan.lists import ScenarioList
    from headrace.results.asked.prompt_table import PromptTable
    from headrace.results.results import Results


class Survey(HostedVerbs):
    """`Survey([question, ...])`, or `Survey()` and `add_question`. What is added changes the survey and returns it."""

    def __init__(
        self,
        questions: Iterable[Question | Instruction | ChangeInstruction] | None = None,
        *,
        name: str | None = None,
        questions_to_randomize: Sequence[str] | None = None,
        options_to_pin: Mapping[str, Sequence[Any]] | None = None,
        seed: int = 0,
    ) -> None:
        """`questions_to_randomize` names questions that show their options in a random order, but for those in
        `options_to_pin`; the order follows from `seed` and the interview, so that it is the same when a run goes on.
        """
        if questions is not None and not isinstance(questions, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"A survey cannot be made of {questions!r}.", fix="Give a list of questions.")
        self.name = name
        self.questions, self.instructions = _split(questions or ())  # bounded by what a person writes
        self.skip_rules: dict[str, Expression] = {}
        self.rules: tuple[Rule, ...] = ()  # in the order they were added
        self.memory: Memory = {}
        self.wording = OURS
        self.groups: Groups = {}
        self.resolved: ResolvedNames = {}  # what its bare names stand for, once the lists are known
        self.positions = _positions(self.questions)
        self._check()
        self.randomize(Randomizing(tuple(questions_to_randomize or ()), dict(options_to_pin or {}), seed))

    @classmethod
    def example(cls) -> Survey:
        """A survey of three questions and a rule, to try things with."""
        options = ["yes", "no"]
        make: Any = Question
        cooks = make("multiple_choice", question_name="q0", question_text="Do you cook?", question_options=options)
        instead = make("free_text", question_name="q1", question_text="Where do you eat instead?")
        dish = make("free_text", question_name="q2", question_text="What did you eat yesterday?")
        return cls([cooks, instead, dish]).add_rule("q0", "{{ q0.answer }} == 'yes'", "q2")

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    @overload
    def __getitem__(self, which: str | int) -> Question: ...
    @overload
    def __getitem__(self, which: slice | list[str]) -> Survey: ...
    def __getitem__(self, which: str | int | slice | list[str]) -> Question | Survey:
        """A question by its name or number; with a slice or a list of names, a survey of those, without rules."""
        match which:
            case str():
                return self.questions[self.position(which)]
            case slice():
                return Survey(self.questions[which])
            case list():
                return Survey([self.questions[self.position(name)] for name in which])
            case _:
                return self.questions[which]

    def __add__(self, other: Survey | Question) -> Survey:
        """A survey that asks this one's questions, then the other's, by the rules of both."""
        if isinstance(other, Question):
            return self.copy().add_question(other)
        if not isinstance(other, Survey):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        both = self.copy()
        both.memory |= other.memory
        both.groups = {**self.groups, **other.groups}
        both.instructions += tuple((place + len(self), given) for place, given in other.instructions)
        both._arrange(
            (*self.questions, *other.questions), (*self.rules, *other.rules), self.skip_rules | other.skip_rules
        )
        mine, theirs = self.randomizing, other.randomizing
        pinned = {**mine.pinned, **theirs.pinned}
        both.randomize(Randomizing((*mine.questions, *theirs.questions), pinned, mine.seed or theirs.seed))
        return both

    @property
    def question_names(self) -> list[str]:
        return list(self.positions)

    @property
    def questions_to_randomize(self) -> list[str]:
        return list(self.randomizing.questions)

    @property
    def is_mapped(self) -> bool:
        """Whether it is one prompt per row, as `Job.map` makes it."""
        return bool(self.questions) and self.questions[0].names_row

    def position(self, question: str | Question) -> int:
        """Where a question stands, or an error that names the nearest one."""
        name = question.question_name if isinstance(question, Question) else question
        if name not in self.positions:
            raise SurveyError(f"There is no question {name!r}.", fix=nearest(str(name), self.positions))
        return self.positions[name]

    def add_question(self, question: Question, index: int | None = None) -> Survey:
        """Add a question at the end, or before the one that stands at `index`."""
        if index is not None and not 0 <= index <= len(self):
            raise SurveyError(f"index={index} is no place in a survey of {len(self)}.", fix="Count from 0.")
        place = len(self) if index is None else index
        self._arrange((*self.questions[:place], question, *self.questions[place:]), self.rules, self.skip_rules)
        self.instructions = moved(self.instructions, place, 1)
        return self

    def add_instruction(self, instruction: Instruction | ChangeInstruction) -> Survey:
        """Put an instruction, or a change of instructions, before the next question that is added."""
        before, self.instructions = self.instructions, (*self.instructions, (len(self), instruction))
        try:
            self._check()
        except SurveyError:
            self.instructions = before
            raise
        return self

    def delete_question(self, identifier: str | int) -> Survey:
        """Remove a question and its rules; a rule that led to it leads to the one that followed it."""
        place = self._place(identifier)
        name, rest = self.questions[place].question_name, self.questions[place + 1 :]
        following = rest[0].question_name if rest else None
        skip_rules = {asked: rule for asked, rule in self.skip_rules.items() if asked != name}
        groups = without_member(self.groups, name, self.question_names)
        self._arrange((*self.questions[:place], *rest), without_question(self.rules, name, following), skip_rules)
        self.groups = groups
        self.randomizing = self.randomizing.without(name)
        self.instructions = moved(self.instructions, place, -1)
        self.memory = without_memory_of(self.memory, name)
        return self

    def drop(self, *question_names: str) -> Survey:
        """A survey without these questions; this one stays as it is."""
        rest = self.copy()
        for name in question_names:
            rest.delete_question(name)
        return rest

    def add_question_group(self, start_question: str | Question, end_question: str | Question, name: str) -> Survey:
        """Give neighbouring questions a name together. It changes nothing that is asked."""
        first, last = (self.questions[self.position(each)].question_name for each in (start_question, end_question))
        self.groups = with_group(self.groups, name, first, last, self.positions)
        return self

    @property
    def question_groups(self) -> dict[str, tuple[int, int]]:
        """The positions of the first and the last question of each group."""
        return spans(self.groups, self.positions)

    def show_flow(self, filename: str | Path | None = None) -> FlowDrawing:
        """The questions and rules as a drawing: a picture in a notebook, Mermaid text where it is printed.

        `filename` writes it as well: .svg or .html for the picture, .mmd or .md for the text.
        """
        drawing = FlowDrawing(self)
        if filename is not None:
            drawing.save(filename)
        return drawing

    def show_rules(self) -> ScenarioList:
        """The rules as rows: skip rules first, then the others in the order they were added."""
        from headrace.plan.lists import ScenarioList

        skips = [(name, rule.source, "the next question", True) for name, rule in self.skip_rules.items()]
        others = [(rule.question, rule.expression.source, rule.target, rule.is_before) for rule in self.rules]
        names = ("current_q", "expression", "next_q", "before_rule")
        return ScenarioList(Scenario(dict(zip(names, row, strict=True))) for row in (*skips, *others))

    def add_rule(
        self,
        question: str | Question,
        expression: str,
        next_question: str | int | Question | EndOfSurveyType,
        before_rule: bool = False,
    ) -> Survey:
        """After `question`, where `expression` is true, go on with `next_question`, or end with `EndOfSurvey`.

        Of several rules that hold, the one added last decides. With `before_rule` the rule is looked at before the
        question, which is then left out as well.
        """
        asked = self.questions[self.position(question)]
        rule = Rule(asked.question_name, parse(expression), self._next_name(next_question), before_rule)
        check_rule(self, rule)
        self.rules += (rule,)
        return self

    def add_stop_rule(self, question: str | Question, expression: str) -> Survey:
        """End the survey after `question` where `expression` is true."""
        return self.add_rule(question, expression, EndOfSurvey)

    def add_skip_rule(self, question: str | Question, expression: str) -> Survey:
        """Skip `question` where `expression` is true: `"{{ mood.answer }} == 'Bad' and agent.age < 30"`."""
        asked = self.questions[self.position(question)]
        rule = parse(expression)
        check_skip_rule(self, asked.question_name, rule)
        earlier = self.skip_rules.get(asked.question_name)
        both = rule if earlier is None else parse(f"({earlier.source}) or ({expression})")
        self.skip_rules[asked.question_name] = both
        return self

    def set_full_memory_mode(self) -> Survey:
        """Have each question remember all questions before it."""
        return self.set_lagged_memory(len(self))

    def set_lagged_memory(self, lags: int) -> Survey:
        """Have each question remember the last `lags` questions before it."""
        if isinstance(lags, bool) or not isinstance(lags, int) or lags < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"lags={lags!r} is no number of questions.", fix="Give a whole number from 0.")
        for position, question in enumerate(self.questions):
            self.add_memory_collection(question, self.questions[max(0, position - lags) : position])
        return self

    def add_targeted_memory(self, focal_question: str | Question, prior_question: str | Question) -> Survey:
        """Have `focal_question` remember `prior_question` and its answer."""
        return self.add_memory_collection(focal_question, [prior_question])

    def add_memory_collection(
        self, focal_question: str | Question, prior_questions: Iterable[str | Question]
    ) -> Survey:
        """Have `focal_question` remember these earlier questions and their answers."""
        asked = self.questions[self.position(focal_question)].question_name
        earlier = [self.questions[self.position(each)].question_name for each in prior_questions]
        self.memory = with_memories(self.memory, asked, earlier, self.positions)
        return self

    def set_wording(
        self, *, persona: str | None = None, before_memory: str | None = None, after_memory: str | None = None
    ) -> Survey:
        """Change the words around the questions: how the system prompt of an agent without an instruction begins, and
        what stands before and after the questions that a prompt remembers.
        """
        given = {"persona": persona, "before_memory": before_memory, "after_memory": after_memory}
        self.wording = replace(self.wording, **{name: value for name, value in given.items() if value is not None})
        return self

    def randomize(self, randomizing: Randomizing) -> None:
        """Show the options of some questions in a random order, as `questions_to_randomize` does."""
        for name in (*randomizing.questions, *randomizing.pinned):
            self.position(name)
        randomizing.check({question.question_name: question for question in self.questions})
        self.randomizing = randomizing

    def remembered_by(self, question: Question) -> tuple[int, ...]:
        """The positions of the earlier questions that this question remembers."""
        return tuple(self.positions[name] for name in self.memory.get(question.question_name, ()))

    def told_to(self, question: Question) -> list[Instruction]:
        """The instructions that this question is asked with."""
        return told_at(self.instructions, self.positions[question.question_name])

    def getter(self, name: str) -> Callable[[Context], Any]:
        """Look up in an interview's context what this name of a rule stands for."""
        return name_getter(with_answer(name, self.positions), self.resolved)

    def positions_in(self, names: Iterable[str]) -> frozenset[int]:
        """The positions of the questions among these names."""
        roots = {name.partition(".")[0] for name in names}
        return frozenset(self.positions[root] for root in roots if root in self.positions)

    def by(self, *what: Any) -> Job:
        """Ask this survey of agents, about scenarios, with models: `survey.by(agents).by(scenarios).by(model)`."""
        from headrace.plan.job import Job

        return Job(self).by(*what)

    def run(self, path: str | Path | None = None, **settings: Any) -> Results:
        """`self.by().run(...)`: with the model that HEADRACE_MODEL names, no agents and no scenarios."""
        return self.by().run(path, **settings)

    def prompts(self) -> PromptTable:
        """Every prompt, without running anything; see `Job.prompts`."""
        return self.by().prompts()

    def show_prompts(self, all: bool = False) -> None:
        """Print the first prompts; `all=True` with every column."""
        self.by().show_prompts(all=all)

    def copy(self) -> Survey:
        """A survey that later changes do not reach; a job keeps one."""
        twin = copy.copy(self)
        vars(twin).update({name: copy.copy(held) for name, held in vars(self).items()})
        return twin

    def with_questions(self, questions: Iterable[Question]) -> Survey:
        """The same survey with other questions of the same names."""
        twin = self.copy()
        twin._arrange(tuple(questions), self.rules, self.skip_rules)
        return twin

    def check_questions(self) -> None:
        """Refuses a survey that asks nothing, when it is to be run."""
        if not self.questions:
            raise SurveyError(
                "The survey has no questions.",
                fix=Spelled(
                    "Add at least one with add_question.", command="Add at least one, in a file under questions:."
                ),
            )

    def to_row(self) -> bytes:
        """The survey as a run file holds it."""
        return survey_to_row(self)

    @classmethod
    def from_row(cls, row: bytes | str, functions: Sequence[Mapping[str, Any]] = ()) -> Survey:
        """The reverse of `to_row`; `functions` are those of each question, where a program gives them."""
        return survey_from_row(cls, row, functions)

    def to_dict(self) -> dict[str, Any]:
        """The survey as JSON values. A function, which no file can hold, is refused."""
        for question in self.questions:
            if question.functions:
                raise SurveyError(
                    f"Question {question.question_name!r} has a function, which cannot be written.",
                    fix="Save the survey without it, and add it in the program.",
                )
        held = msgspec.json.decode(self.to_row())
        held.pop("names", None)  # what bare names stand for is found anew with the lists of each job
        return held

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Survey:
        """The reverse of `to_dict`; also for what EDSL writes."""
        if "rule_collection" in data:
            return cls.from_edsl(data)
        return cls.from_row(msgspec.json.encode({"skip": {}, **data}))

    @classmethod
    def from_edsl(cls, given: Any) -> Survey:
        """The survey that EDSL holds: an object of EDSL's, its `to_dict()`, JSON text, or a file that it saved.

        Nothing in it is executed. What is not carried over is a warning, NotCarriedOver.
        """
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given)

    def save(self, path: str | Path) -> None:
        """Write the survey to a `.yaml` or `.json` file, which `Survey.load` and `headrace run` read."""
        from headrace.plan.study_files import save

        save(self, path)

    @staticmethod
    def load(path: str | Path, *, allow: str | Iterable[str] = ()) -> Survey:
        """Read a survey file. Nothing in it is executed.

        A question's model with an address or a key variable of its own is refused when it runs, unless `allow` names
        these.
        """
        from headrace.plan.study_files import load_survey

        return load_survey(path, allow)

    def __repr__(self) -> str:
        return f"Survey({', '.join(self.positions)})"

    def _repr_html_(self) -> str:
        shown = self.questions[:SHOWN_ROWS]
        rows = ((q.question_name, q.kind, q.question_text, _choices(q), self._rule_text(q)) for q in shown)
        columns = ("question", "kind", "text", "options", "rules")
        return html_table(columns, rows, first_of(len(shown), len(self), "question"))

    def _rule_text(self, question: Question) -> str:
        name = question.question_name
        skip = [f"skipped where {self.skip_rules[name].source}"] if name in self.skip_rules else []
        return "; ".join([*skip, *(rule.describe() for rule in self.rules if rule.question == name)])

    def _place(self, identifier: str | int) -> int:
        if isinstance(identifier, str):
            return self.position(identifier)
        if not 0 <= identifier < len(self):
            raise SurveyError(f"There is no question number {identifier}.", fix=f"There are {len(self)}, from 0 on.")
        return identifier

    def _next_name(self, question: str | int | Question | EndOfSurveyType) -> str | None:
        """The name of the question that a rule leads to; None for the end."""
        if is_end(question) or question == len(self):
            return None
        if isinstance(question, (str, Question)):
            return self.questions[self.position(question)].question_name
        if isinstance(question, EndOfSurveyType):
            return None
        return self.questions[self._place(question)].question_name

    def _arrange(
        self, questions: tuple[Question, ...], rules: tuple[Rule, ...], skip_rules: dict[str, Expression]
    ) -> None:
        """Take these questions and rules if they fit together; else the survey stays as it was."""
        before = self.questions, self.rules, self.skip_rules, self.positions
        positions = _positions(questions)
        self.questions, self.rules, self.skip_rules, self.positions = questions, rules, skip_rules, positions
        try:
            self._check()
        except SurveyError:
            self.questions, self.rules, self.skip_rules, self.positions = before
            raise

    def _check(self) -> None:
        check_instructions(self.instructions)
        check_names(self)


def _split(
    given: Iterable[Question | Instruction | ChangeInstruction],
) -> tuple[tuple[Question, ...], Instructions]:
    """The questions, and the instructions with the number of questions before each."""
    questions: list[Question] = []
    instructions: list[tuple[int, Instruction | ChangeInstruction]] = []
    for each in given:
        if isinstance(each, (Instruction, ChangeInstruction)):
            instructions.append((len(questions), each))
        else:
            questions.append(each)
    return tuple(questions), tuple(instructions)


def _choices(question: Question) -> str:
    options = getattr(question, "question_options", None) or getattr(question, "options", ())
    return options if isinstance(options, str) else ", ".join(map(str, options))


def _positions(questions: tuple[Question, ...]) -> dict[str, int]:
    positions: dict[str, int] = {}
    seen: dict[str, str] = {}
    for position, question in enumerate(questions):
        if not isinstance(question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"{question!r} is not a question.", fix="Use QuestionFreeText(...) and its like.")
        question.check_name()
        name = question.question_name
        if name.lower() in seen:
            # Names become columns, and SQLite does not tell upper from lower case there.
            other = seen[name.lower()]
            said = repr(name) if other == name else f"{other!r} and {name!r}, and upper case makes no difference"
            raise SurveyError(f"Two questions are called {said}.", fix="Rename one.")
        seen[name.lower()] = name
        positions[name] = position
    return positions
