"""Decides for one interview which questions are asked, skipped, or not asked. Compiled once per survey; pure.

Covers: what each question waits for, and what the rules of the questions before it mean for it. Does not cover: the
order in which questions that wait for nothing are put (interviews.interview).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from headrace.expressions import Expression, compile_closure, truth
from headrace.survey.flow.rules import Rule
from headrace.survey.flow.used_names import answers_named_by, shown_by
from headrace.survey.record import AnswerRecord, AnswerState
from headrace.survey.survey import Survey

Names: TypeAlias = dict[str, dict[str, Any]]
Records: TypeAlias = Sequence[AnswerRecord | None]
# For each question with rules that is decided: the position that an interview goes on at after it.
Jumps: TypeAlias = dict[int, int]
_Test: TypeAlias = Callable[[Names], bool]

_ANSWERED, _SKIPPED, _FAILED, _NOT_ASKED = AnswerState  # a member of an enum is slow to look up
_NO_JUMP: Final = 0
_UNDECIDED: Final = -1


class RouteStep:
    """What decides about one question. `gates` are the questions before it whose rules could jump over it."""

    __slots__ = ("before", "before_needs", "gates", "is_gate", "is_plain", "needs", "position", "remembers", "waits")

    def __init__(self, position: int) -> None:
        self.position = position
        self.before: list[tuple[_Test, int]] = []  # the rules that stand before it, in the order they were added
        self.before_needs: frozenset[int] = frozenset()
        self.needs: frozenset[int] = frozenset()  # the answers that its own settings name
        self.remembers: frozenset[int] = frozenset()  # the answers that its prompt tells, where there are any
        self.gates: tuple[int, ...] = ()
        self.waits: frozenset[int] = frozenset()
        self.is_gate = False
        self.is_plain = True  # always asked


class _Exit:
    """The rules that stand after one question, the last added first."""

    __slots__ = ("needs", "position", "reach", "rules")

    def __init__(self, position: int) -> None:
        self.position = position
        self.rules: list[tuple[_Test, int]] = []
        self.needs: frozenset[int] = frozenset()
        self.reach = position + 1  # the furthest position that a rule after or before the question leads to

    def target(self, records: Records, names: Names) -> int:
        """Where an interview goes on after this question was asked."""
        if _are_missing(records, self.needs):
            return _UNDECIDED
        target = _first_target(self.rules, names)
        return _NO_JUMP if target is None else target


class Route:
    """The rules of a survey, compiled."""

    def __init__(self, survey: Survey) -> None:
        self.steps = [RouteStep(position) for position in range(len(survey))]
        self._exits: dict[int, _Exit] = {}
        for position, question in enumerate(survey.questions):
            # Showing a question's text or options takes what these need, not its answer.
            shown = [self.steps[earlier].needs for earlier in shown_by(survey, question)]
            self.steps[position].needs = _union([answers_named_by(survey, question), *shown])
            self.steps[position].remembers = frozenset(survey.remembered_by(question))
            if (skip := survey.skip_rules.get(question.question_name)) is not None:
                self._add_before(survey, position, skip, _NO_JUMP)
        for rule in survey.rules:
            self._add(survey, rule)
        for step in self.steps:
            self._finish(step)

    def needed(self) -> frozenset[int]:
        """The positions of the questions whose answers a text, a rule or a memory names."""
        texts_and_rules = (step.needs | step.before_needs | step.remembers for step in self.steps)
        return _union([*texts_and_rules, *(way_out.needs for way_out in self._exits.values())])

    def decide(self, step: RouteStep, records: Records, jumps: Jumps, names: Names) -> AnswerState:
        """SKIPPED, NOT_ASKED, or ANSWERED for a question that is to be asked. All that it waits for is decided."""
        state = self._reached(step, records, jumps, names) if step.gates else _ANSWERED
        if step.before and state is _ANSWERED:
            if _are_missing(records, step.before_needs):
                state = _NOT_ASKED
            elif (target := _first_target(step.before, names)) is not None:
                jumps[step.position] = target
                return _SKIPPED
        if state is _ANSWERED and _are_missing(records, step.needs):
            state = _NOT_ASKED
        if step.is_gate and state is not _ANSWERED:
            jumps[step.position] = _UNDECIDED if state is _NOT_ASKED else _NO_JUMP
        return state

    def _reached(self, step: RouteStep, records: Records, jumps: Jumps, names: Names) -> AnswerState:
        """Whether the rules of earlier questions lead to this one."""
        for gate in step.gates:
            target = jumps.get(gate)
            if target is None:
                target = jumps[gate] = self._exits[gate].target(records, names)
            if target > step.position:
                return _SKIPPED
            if target == _UNDECIDED:
                return _NOT_ASKED
        return _ANSWERED

    def _add(self, survey: Survey, rule: Rule) -> None:
        position = survey.position(rule.question)
        target = len(survey) if rule.next_question is None else survey.position(rule.next_question)
        way_out = self._exits.setdefault(position, _Exit(position))
        way_out.reach = max(way_out.reach, target)
        if rule.is_before:
            self._add_before(survey, position, rule.expression, target)
        else:
            way_out.rules.insert(0, (_test(survey, rule.expression), target))
            way_out.needs |= survey.positions_in(rule.expression.names)

    def _add_before(self, survey: Survey, position: int, expression: Expression, target: int) -> None:
        step = self.steps[position]
        step.before.append((_test(survey, expression), target))
        step.before_needs |= survey.positions_in(expression.names)

    def _finish(self, step: RouteStep) -> None:
        gates = [e for e in self._exits.values() if e.position < step.position < e.reach]
        step.gates = tuple(sorted(way_out.position for way_out in gates))
        step.is_gate = step.position in self._exits
        step.waits = _union(
            [step.needs, step.before_needs, step.remembers, frozenset(step.gates), *(e.needs for e in gates)]
        )
        step.is_plain = not (step.waits or step.before)


def _test(survey: Survey, expression: Expression) -> _Test:
    return truth(compile_closure(expression, survey.getter))


def _first_target(rules: list[tuple[_Test, int]], names: Names) -> int | None:
    """Where the first rule that holds leads to."""
    for test, target in rules:
        if test(names):
            return target
    return None


def _are_missing(records: Records, positions: Iterable[int]) -> bool:
    """Whether one of these questions has no answer for another reason than a rule."""
    for position in positions:
        record = records[position]
        if record is not None and record.state >= _FAILED:
            return True
    return False


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset[int]().union(*sets)
