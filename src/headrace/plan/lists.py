"""Lists of agents, scenarios and models: any iterable, or a file, held outside RAM once it is long.

Covers: what users make and pass to `by`. Does not cover: reading files (plan.sources).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from headrace.display import SHOWN_ROWS, counted, first_of, html_note, html_table
from headrace.errors import HeadraceError, ListError
from headrace.plan.identity import digest
from headrace.plan.sources import CsvSource, JsonlSource, RowSource, Spool
from headrace.stand_ins import HostedVerbs
from headrace.survey.agent import NAME, Agent
from headrace.survey.model import Model
from headrace.survey.people.agent_settings import PLAIN, SETTINGS, AgentSettings, SettingsTable
from headrace.survey.scenario import Scenario
from headrace.survey.values import Fields, decode_fields

Item = TypeVar("Item", Agent, Scenario)


class RowList(HostedVerbs, Generic[Item]):
    """A list whose items are read one by one from their source. An iterator is consumed once, here."""

    item: type[Item]
    what: str
    also: str = ""  # what else an item may be given as

    def __init__(self, items: Iterable[Item] = ()) -> None:
        if not isinstance(items, Iterable) or isinstance(items, (str, bytes)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"A list of {self.what}s cannot be made of {items!r}.", fix="Give a list of them.")
        self.source: RowSource = Spool(self._fields(items), self.what)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """One item a row of a `.csv` or `.jsonl` file."""
        return cls.of(_source(path, {}))

    @classmethod
    def of(cls, source: RowSource) -> Self:
        """A list of the rows of this source."""
        made = cls.__new__(cls)
        made.source = source
        return made

    @property
    def digest(self) -> str:
        """What the list holds, as a digest: by it a plan knows its lists."""
        return self.source.digest

    def __len__(self) -> int:
        return self.source.length

    def __iter__(self) -> Iterator[Item]:
        return map(self._item, self.source.rows())

    def _item(self, row: bytes) -> Item:
        return self.item.from_fields(decode_fields(row))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(len(self), self.what)})"

    def _repr_html_(self) -> str:
        try:
            rows = [decode_fields(row) for row in islice(self.source.rows(), SHOWN_ROWS)]
        except HeadraceError as error:  # a file that was moved away: a notebook would show our traceback
            return html_note(f"{self!r}: {error}")
        columns = list(dict.fromkeys(name for row in rows for name in row))
        caption = first_of(len(rows), len(self), self.what)
        return html_table(columns, ([row.get(name) for name in columns] for row in rows), caption)

    def _fields(self, items: Iterable[Item]) -> Iterator[Fields]:
        for position, item in enumerate(items):
            if not isinstance(item, self.item):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ListError(
                    f"{self.what} {position} of the list is a {type(item).__name__}.",
                    fix=f"Give {self.item.__name__} objects{self.also}.",
                )
            yield self._row(item)

    def _row(self, item: Item) -> Fields:
        return item.to_fields()


def _source(path: str | Path, rename: dict[str, str]) -> RowSource:
    """The source of a file's rows, chosen by the end of its name: CSV, or JSON lines."""
    path = Path(path)
    match path.suffix.lower():
        case ".csv":
            return CsvSource(path, rename)
        case ".jsonl" | ".ndjson":
            return JsonlSource(path, rename)
        case other:
            raise ListError(f"{path} ends in {other!r}.", fix="Give a .csv or a .jsonl file.")


class AgentList(RowList[Agent]):
    """Agents, any number. `codebook` and `traits_presentation_template` are given to each; the list holds them once."""

    item, what = Agent, "agent"

    def __init__(
        self,
        items: Iterable[Agent] = (),
        codebook: Mapping[str, str] | None = None,
        traits_presentation_template: str | None = None,
    ) -> None:
        self.settings = SettingsTable()
        self._shared = _shared_settings(codebook, traits_presentation_template)
        super().__init__(items)
        self.source.census.forget(SETTINGS)  # it is no trait
        self._digest = _digest_with(self.settings, self.source)

    @classmethod
    def of(cls, source: RowSource, settings: SettingsTable | None = None, digest: str | None = None) -> Self:
        """A list of the rows of this source, whose agents have these settings; `digest` where it is known."""
        made = super().of(source)
        made.settings, made._shared = settings or SettingsTable(), PLAIN
        made._digest = digest or _digest_with(made.settings, source)
        return made

    @property
    def digest(self) -> str:
        return self._digest

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        name_field: str | None = None,
        codebook: Mapping[str, str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """One agent a row. A column `agent_name`, or the one called `name_field`, becomes the agent's name."""
        return cls._from_rows(CsvSource(Path(path), {name_field: NAME} if name_field else {}), codebook, instructions)

    @classmethod
    def from_jsonl(
        cls,
        path: str | Path,
        name_field: str | None = None,
        codebook: Mapping[str, str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """One agent a line, each a JSON object; names as in `from_csv`."""
        return cls._from_rows(JsonlSource(Path(path), {name_field: NAME} if name_field else {}), codebook, instructions)

    @classmethod
    def from_list(cls, trait_name: str, values: Iterable[Any], codebook: Mapping[str, str] | None = None) -> Self:
        """One agent for each value of one trait."""
        _refuse_text(values)
        return cls((Agent({trait_name: value}) for value in values), codebook)

    @classmethod
    def _from_rows(cls, source: RowSource, codebook: Mapping[str, str] | None, instructions: str | None) -> Self:
        if SETTINGS in source.census.kinds:
            raise ListError(f"The file has a column {SETTINGS!r}.", fix="Give it another name: that one is taken.")
        listed = cls.of(source, SettingsTable([_shared_settings(codebook, None)]))
        return listed if instructions is None else cls(_instructed(listed, instructions))

    def _item(self, row: bytes) -> Agent:
        fields = decode_fields(row)
        return Agent.from_fields(fields, self.settings.of(fields))

    def _row(self, item: Agent) -> Fields:
        settings, shared = item.settings, self._shared
        if shared is not PLAIN:
            settings = AgentSettings(shared.codebook or settings.codebook, shared.template or settings.template)
        number = self.settings.number(settings)
        fields = item.to_fields()
        return {**fields, SETTINGS: number} if number else fields


class ScenarioList(RowList[Scenario]):
    item, what, also = Scenario, "scenario", ' or dicts, like {"text": "..."}'

    @classmethod
    def from_csv(cls, path: str | Path) -> Self:
        """One scenario a row, with the columns as its fields."""
        return cls.of(CsvSource(Path(path), {}))

    @classmethod
    def from_jsonl(cls, path: str | Path) -> Self:
        """One scenario a line, each a JSON object."""
        return cls.of(JsonlSource(Path(path), {}))

    @classmethod
    def from_list(cls, field: str, values: Iterable[Any]) -> Self:
        """One scenario for each value of one field: `ScenarioList.from_list("city", ["Oslo", "Lima"])`."""
        _refuse_text(values)
        return cls(Scenario({field: value}) for value in values)

    def __init__(self, items: Iterable[Scenario | dict[str, Any]]) -> None:
        super().__init__(items)  # pyright: ignore[reportArgumentType]

    def _fields(self, items: Iterable[Scenario]) -> Iterator[Fields]:
        # A plain dict says all that a scenario is.
        return super()._fields(Scenario(item) if type(item) is dict else item for item in items)


def _shared_settings(codebook: Mapping[str, str] | None, template: str | None) -> AgentSettings:
    return Agent(codebook=codebook, traits_presentation_template=template).settings


def _digest_with(settings: SettingsTable, source: RowSource) -> str:
    row = settings.to_row()
    return digest(source.digest.encode() + row) if row else source.digest


def _instructed(agents: Iterable[Agent], instruction: str) -> Iterator[Agent]:
    for agent in agents:
        agent.instruction = instruction
        yield agent


def _refuse_text(values: object) -> None:
    if isinstance(values, str):
        raise ListError(f"{values!r} is one text, not a list.", fix="Put it in brackets.")


class ModelList(tuple[Model, ...]):
    """A few models; unlike the other lists it is held in RAM."""

    __slots__ = ()

    def __new__(cls, models: Iterable[Model]) -> Self:
        held = super().__new__(cls, models)
        for model in held:
            if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ListError(f"{model!r} is not a model.", fix='Write Model("test").')
        return held

    def _repr_html_(self) -> str:
        """Without their parameters: a key may be among them, and notebooks are passed on."""
        rows = [(model.name, model.service_name) for model in self[:SHOWN_ROWS]]
        return html_table(("model", "service"), rows, first_of(len(rows), len(self), "model"))


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
        case AgentList() | ScenarioList() | ModelList():
            return given
        case Agent():
            return AgentList([given])
        case dict():
            return ScenarioList([Scenario(given)])  # pyright: ignore[reportUnknownArgumentType]
        case Model():
            return ModelList([given])
        case str() | bytes():
            pass
        case Iterable():
            return _from_items(iter(given))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            pass
    raise ListError(
        f"A job cannot be made with a {type(given).__name__}.",
        fix="Pass an AgentList, a ScenarioList, a ModelList, or single agents, scenarios and models.",
    )


def _from_items(items: Iterator[Any]) -> AgentList | ScenarioList | ModelList:
    """A list of the kind its first item has; the rest stays a stream."""
    first = next(items, None)
    if first is None:
        raise ListError("The list is empty.", fix="Give at least one item.")
    everything = _chained(first, items)
    if isinstance(first, Agent):
        return AgentList(everything)
    return ModelList(everything) if isinstance(first, Model) else ScenarioList(everything)


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
