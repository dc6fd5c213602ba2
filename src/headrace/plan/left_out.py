"""Leaves out combinations of a job: `job.where(...)`, evaluated once into a bitmap that the run file keeps.

A condition names fields of the agent, the scenario and the model, `agent.age > 30 and scenario.city != 'Oslo'`, and the
places in the lists: `agent._index`, `scenario._index`, `model._index`. It is split at its `and`s. What names the agent
alone is evaluated once an agent, what names no agent once a scenario and model, and only the rest once a combination.

Memory: at most one bit a combination, far less where what is left out is regular (plan.bitmap), and the fields of at
most 20,000 scenarios; lists are read as streams. More than 2^32 combinations are refused. Does not cover: storing the
bitmap (store.run_file.stored_job.stored_where), or which of the others a run conducts (plan.portion).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from headrace.errors import ListError, SurveyError, nearest, nearest_field
from headrace.expressions import Expression, compile_closure, parse, truth
from headrace.expressions.rewriting import conjuncts
from headrace.plan.bit_writer import BitWriter, repeated
from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Box
from headrace.survey.agent import NAME
from headrace.survey.names import AGENT_NAME, STORED_AGENT_NAME, Context, name_getter, named_agent
from headrace.survey.values import Fields, decode_fields

if TYPE_CHECKING:
    from headrace.plan.job import Job
    from headrace.plan.sources.row_source import RowSource
    from headrace.survey.model import Model

_Test = Callable[[Context], bool]
_INDEX = "_index"
_ROOTS = ("agent", "scenario", "model")
_HELD_SCENARIOS = 20_000
_MOST_COMBINATIONS = 2**32
_MODEL_FIELDS = ("model", "inference_service", _INDEX)


def read_condition(text: object) -> Expression:
    """A condition of `where`, in the language of rules; also all of it in braces, as EDSL's `include_when` has it."""
    if not isinstance(text, str) or not text.strip():
        raise SurveyError(f"where({text!r}) is no condition.", fix='Write one like "agent.age > 30".')
    inner = text.strip().removeprefix("{{").removesuffix("}}")
    is_in_braces = len(inner) == len(text.strip()) - 4 and "{{" not in inner
    return parse(inner.strip() if is_in_braces else text)


def left_out(job: Job, box: Box) -> Bitmap:
    """The combinations in a box of the plan that a job's conditions leave out, by their place in the box."""
    if box.size > _MOST_COMBINATIONS:
        raise ListError(
            f"where() has {box.size:,} combinations to look at, and {_MOST_COMBINATIONS:,} are the most.",
            fix="Leave agents or scenarios out of their lists instead, with filter().",
        )
    return _Evaluation(job, box).bits()


class _Evaluation:
    """One pass over a box: agents as a stream, the scenarios and models of each from memory where they fit."""

    def __init__(self, job: Job, box: Box) -> None:
        self._job, self._box = job, box
        resolved = self._resolved = _resolved(job)
        parts = [part for each in job.conditions for part in conjuncts(each)]
        # Not a dict: parts of one expression are equal, for its source is.
        rooted = [({resolved.get(name, name).partition(".")[0] for name in part.names}, part) for part in parts]
        tests = [(roots, _test(part, resolved)) for roots, part in rooted]
        self._of_agents = [test for roots, test in tests if roots <= {"agent"}]
        self._of_pairs = [test for roots, test in tests if roots and "agent" not in roots]
        self._of_all = [test for roots, test in tests if "agent" in roots and len(roots) > 1]
        low, high = box
        self._models = [_model_fields(job.models[at], at) for at in range(low.model, high.model)]
        held = high.scenario - low.scenario <= _HELD_SCENARIOS
        self._scenarios = list(self._read_scenarios()) if held else None

    def bits(self) -> Bitmap:
        iterations, agents, scenarios, models = self._box.sides
        width = scenarios * models
        written = BitWriter(agents * width)
        pairs, everything = self._pairs_out({}, self._of_pairs, Bitmap(width)), Bitmap(width)
        everything.fill(width)
        low, high = self._box
        for agent in _fields(self._job.agents.source, low.agent, high.agent):
            context: Context = {"agent": named_agent(agent, agent[_INDEX], self._resolved)}
            is_in = all(test(context) for test in self._of_agents)
            written.append_all(self._pairs_out(context, self._of_all, pairs) if is_in else everything)
        return repeated(written.bitmap(), iterations)

    def _pairs_out(self, context: Context, tests: list[_Test], known: Bitmap) -> Bitmap:
        """The scenarios with their models for which a test fails, and those `known` to be left out."""
        if not tests:
            return known
        out, at = known.copy(), 0
        for scenario in self._read_scenarios() if self._scenarios is None else self._scenarios:
            context["scenario"] = scenario
            for context["model"] in self._models:
                if at not in known and not all(test(context) for test in tests):
                    out.add(at)
                at += 1
        return out

    def _read_scenarios(self) -> Iterator[Fields]:
        low, high = self._box
        return _fields(self._job.scenarios.source, low.scenario, high.scenario)


def _fields(source: RowSource, first: int, stop: int) -> Iterator[Fields]:
    """The rows of a list from `first` up to `stop`, each with its place."""
    for at, row in enumerate(islice(source.rows(), first, stop), first):
        yield {**decode_fields(row), _INDEX: at}


def _model_fields(model: Model, at: int) -> Fields:
    plain = {name: value for name, value in model.parameters.items() if not callable(value)}
    return {**plain, "model": model.name, "inference_service": model.service_name, _INDEX: at}


def _test(part: Expression, resolved: dict[str, str]) -> _Test:
    return truth(compile_closure(part, partial(name_getter, resolved=resolved)))


def _resolved(job: Job) -> dict[str, str]:
    """What each name of the conditions stands for: SurveyError for one that several lists have, or none."""
    agents, scenarios = job.agents.source.census.kinds, job.scenarios.source.census.kinds
    models = {name for model in job.models for name in (*model.parameters, *_MODEL_FIELDS)}
    known: dict[str, Iterable[str]] = {"agent": [*agents, _INDEX], "scenario": [*scenarios, _INDEX], "model": models}
    questions = {question.question_name for question in job.survey.questions}
    resolved: dict[str, str] = {}
    for name in sorted({name for each in job.conditions for name in each.names}):
        root, _, rest = name.partition(".")
        if root in _ROOTS and rest:
            if name == AGENT_NAME and "name" not in agents and NAME in agents:
                resolved[name] = STORED_AGENT_NAME
            elif rest not in known[root] and rest.partition(".")[0] not in known[root]:
                raise SurveyError(
                    f"where(): no {root} has a field {rest!r}.", fix=nearest_field(root, rest, known[root])
                )
        else:
            resolved[root] = _only_one(
                root,
                [group for group in ("agent", "scenario") if root in known[group]],
                questions,
                [*agents, *scenarios],
            )
    return resolved


def _only_one(name: str, groups: list[str], questions: Iterable[str], fields: list[str]) -> str:
    if len(groups) == 1:
        return f"{groups[0]}.{name}"
    if groups:
        raise SurveyError(f"where(): {name!r} could be two things.", fix=f"Write agent.{name} or scenario.{name}.")
    if name in questions:
        raise SurveyError(
            f"where() names the question {name!r}, and there are no answers before the run.",
            fix="Use a skip rule of the survey, or results.filter() afterwards.",
        )
    close = nearest(name, fields)
    fix = close if close.startswith("Did") else f"Write agent.{name}, scenario.{name} or model.{name}."
    raise SurveyError(f"where(): there is nothing called {name!r}.", fix=fix)
