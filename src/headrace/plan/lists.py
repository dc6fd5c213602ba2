"""The lists that users make and pass to `by`: of agents, of scenarios, of models.

Covers: lists of models, and what an argument of `by` stands for. Does not cover: lists of agents and of scenarios,
which are held outside RAM (plan.rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, overload

from headrace.display import SHOWN_ROWS, counted, first_of, html_table
from headrace.errors import ListError
from headrace.plan.rows.agent_list import AgentList
from headrace.plan.rows.row_expressions import condition
from headrace.plan.rows.scenario_list import ScenarioList
from headrace.survey.agent import Agent
from headrace.survey.model import Model, shown_value
from headrace.survey.people.field_verbs import given_names
from headrace.survey.scenario import Scenario
from headrace.survey.values import Fields, kind_of

if TYPE_CHECKING:
    from headrace.plan.rows.row_table import RowTable
    from headrace.results.export.pandas_frames import DataFrame

__all__ = ["AgentList", "ModelList", "ScenarioList", "as_list", "gathered"]


_SHOWN = 60  # letters of a text that an error repeats


class ModelList(tuple[Model, ...]):
    """A few models; unlike the other lists it is held in RAM, and it cannot be changed."""

    __slots__ = ()

    def __new__(cls, models: Iterable[Model] = ()) -> Self:
        held = super().__new__(cls, models)
        for model in held:
            if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ListError(f"{model!r} is not a model.", fix='Write Model("test").')
        return held

    @classmethod
    def from_names(cls, *names: str | Iterable[str], **parameters: Any) -> Self:
        """One model for each name, with these parameters: `ModelList.from_names("gpt-4o", "gpt-4o-mini")`."""
        return cls(Model(name, **parameters) for name in given_names(names))

    @classmethod
    def from_edsl(cls, given: Any, *, allow: str | Iterable[str] = ()) -> Self:
        """The models that EDSL holds: an object, a dict, JSON text or a file; see `Survey.from_edsl` and `Job.load`."""
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given, allow)

    @property
    def names(self) -> set[str]:
        """The names of its models."""
        return {model.name for model in self}

    @overload
    def __getitem__(self, index: SupportsIndex) -> Model: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Model | Self:
        found = super().__getitem__(index)
        return found if isinstance(found, Model) else type(self)(found)

    def __add__(self, other: Any) -> Self:
        return type(self)([*self, *([other] if isinstance(other, Model) else other)])

    def filter(self, expression: str) -> Self:
        """The models for which an expression holds, over `model_name`, `service_name` and their parameters."""
        rows = [_model_fields(model) for model in self]
        holds = condition(expression, "model", {name for fields in rows for name in fields})
        return type(self)(model for model, fields in zip(self, rows, strict=True) if holds(fields))

    def print(self, format: str | None = None, max_rows: int | None = None) -> None:
        """Print the models as a table that fits the terminal; parameters as those of `Results.print`."""
        self.table().print(format, max_rows=max_rows)

    def table(self) -> RowTable:
        """The models as a table that shows itself: name, service, and the parameters that any of them has."""
        from headrace.plan.rows.row_table import RowTable

        rows = [_shown_fields(model) for model in self]
        names = dict.fromkeys(["model", "service", *(name for row in rows for name in row)])
        kinds = {name: {kind_of(row[name]) for row in rows if name in row} for name in names}
        return RowTable(kinds, lambda: iter(rows), len(rows), "model")

    def to_pandas(self) -> DataFrame:
        """The models as a data frame, with the columns of `table`."""
        return self.table().to_pandas()

    def to_csv(self, path: str | Path) -> Path:
        """Write a header and a line for each model, with the columns of `table`."""
        return self.table().to_csv(path)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(len(self), 'model')})"

    def _repr_html_(self) -> str:
        """Without their parameters: a key may be among them, and notebooks are passed on."""
        rows = [(model.name, model.service_name) for model in self[:SHOWN_ROWS]]
        return html_table(("model", "service"), rows, first_of(len(rows), len(self), "model"))


def _model_fields(model: Model) -> Fields:
    return {**model.parameters, "model_name": model.name, "model": model.name, "service_name": model.service_name}


def _shown_fields(model: Model) -> Fields:
    """The columns of a model. A function is shown by its name, as `Model` shows it."""
    parameters = {name: shown_value(value) if callable(value) else value for name, value in model.parameters.items()}
    return {**parameters, "model": model.name, "service": model.service_name}


def gathered(what: Iterable[Any]) -> Iterator[Any]:
    """The arguments of `by`, with single items of a kind as one list: `by(Model("a"), Model("b"))` are two models."""
    singles: dict[type, list[Any]] = {}
    for given in what:
        kind = next((kind for kind in (Agent, dict, Model) if isinstance(given, kind)), None)
        if kind is None:
            yield given
        else:
            singles.setdefault(kind, []).append(given)
    yield from singles.values()


def as_list(given: Any) -> AgentList | ScenarioList | ModelList:
    """An argument of `by` as the list that it is or stands for."""
    match given:
        case AgentList() | ScenarioList():
            return given.snapshot()
        case ModelList():
            return given
        case Agent():
            return AgentList([given])
        case dict():
            return ScenarioList([Scenario(given)])  # pyright: ignore[reportUnknownArgumentType]
        case Model():
            return ModelList([given])
        case str():
            raise ListError(f"A job cannot be made with a str, {given[:_SHOWN]!r}.", fix=_fix_for(given[:_SHOWN]))
        case bytes():
            pass
        case Iterable():
            return _from_items(iter(given))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            pass
    raise ListError(
        f"A job cannot be made with a {type(given).__name__}.",
        fix="Pass an AgentList, a ScenarioList, a ModelList, or single agents, scenarios and models.",
    )


def _fix_for(text: str) -> str:
    """What was meant by a text: a file's name, or a model's."""
    reader = {".csv": "from_csv", ".tsv": "from_csv", ".jsonl": "from_jsonl", ".ndjson": "from_jsonl"}
    reads = reader.get(Path(text).suffix.lower())
    if reads is not None:
        return f'Read the file: ScenarioList.{reads}("{text}"), or AgentList.{reads}("{text}").'
    return f'Write Model("{text}") for a model, ScenarioList.from_list("city", ["Oslo"]) for scenarios.'


def _from_items(items: Iterator[Any]) -> AgentList | ScenarioList | ModelList:
    """A list of the kind its first item has; the rest stays a stream."""
    first = next(items, None)
    if first is None:
        raise ListError("The list is empty.", fix="Give at least one item.")
    if isinstance(first, str):
        raise ListError(f"The list begins with a str, {first[:_SHOWN]!r}.", fix=_fix_for(first[:_SHOWN]))
    everything = _chained(first, items)
    if isinstance(first, Agent):
        return AgentList(everything)
    return ModelList(everything) if isinstance(first, Model) else ScenarioList(everything)


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
