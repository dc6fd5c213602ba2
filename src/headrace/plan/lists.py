"""Lists of agents, scenarios and models: what users make and pass to `by`.

Covers: what each kind has of its own. Does not cover: the verbs that lists of agents and of scenarios share
(plan.rows.row_list), or reading files (plan.sources).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, SupportsIndex, cast, overload

from headrace.display import SHOWN_ROWS, first_of, html_table
from headrace.errors import ListError
from headrace.plan.identity import digest
from headrace.plan.rows import row_shape
from headrace.plan.rows.given_sources import given_source, snake_names
from headrace.plan.rows.row_expressions import condition
from headrace.plan.rows.row_list import RowList, file_source
from headrace.plan.sources import CsvSource, JsonlSource, RowSource
from headrace.survey.agent import AGENT_PARTS, NAME, Agent
from headrace.survey.model import Model
from headrace.survey.people.agent_settings import PLAIN, SETTINGS, AgentSettings, SettingsTable
from headrace.survey.people.field_verbs import given_names
from headrace.survey.scenario import Scenario
from headrace.survey.values import Fields


class AgentList(RowList[Agent]):
    """Agents, any number. `codebook` and `traits_presentation_template` are given to each; the list holds them once."""

    item, what, parts = Agent, "agent", AGENT_PARTS

    def __init__(
        self,
        items: Iterable[Agent] | None = None,
        codebook: Mapping[str, str] | None = None,
        traits_presentation_template: str | None = None,
    ) -> None:
        self.settings = SettingsTable()
        self._shared = _shared_settings(codebook, traits_presentation_template)
        super().__init__(items)
        self.source.census.forget(SETTINGS)  # it is no trait
        self._digest: str | None = None

    @classmethod
    def of(cls, source: RowSource, settings: SettingsTable | None = None, digest: str | None = None) -> Self:
        """A list of the rows of this source, whose agents have these settings; `digest` where it is known."""
        made = super().of(source)
        made.settings, made._shared, made._digest = settings or SettingsTable(), PLAIN, digest
        return made

    @property
    def digest(self) -> str:
        if self._digest is None:
            row = self.settings.to_row()
            self._digest = digest(self.source.digest.encode() + row) if row else self.source.digest
        return self._digest

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """One agent a row of a `.csv` or `.jsonl` file."""
        return cls._from_source(file_source(Path(path), {}), None, None)

    @classmethod
    def from_csv(
        cls,
        file_path: str | Path,
        name_field: str | None = None,
        codebook: Mapping[str, str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """One agent a row. A column `agent_name`, or the one called `name_field`, becomes the agent's name."""
        source = CsvSource(Path(file_path), {name_field: NAME} if name_field else {})
        return cls._from_source(source, codebook, instructions)

    @classmethod
    def from_jsonl(
        cls,
        source: str | Path,
        name_field: str | None = None,
        codebook: Mapping[str, str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """One agent a line, each a JSON object; names as in `from_csv`."""
        rows = JsonlSource(Path(source), {name_field: NAME} if name_field else {})
        return cls._from_source(rows, codebook, instructions)

    @classmethod
    def from_list(cls, trait_name: str, values: Iterable[Any], codebook: Mapping[str, str] | None = None) -> Self:
        """One agent for each value of one trait."""
        _refuse_text(values)
        return cls((Agent({trait_name: value}) for value in values), codebook)

    @classmethod
    def from_source(
        cls,
        source_type_or_data: Any,
        *args: Any,
        instructions: str | None = None,
        codebook: Mapping[str, str] | None = None,
        name_field: str | None = None,
        **options: Any,
    ) -> Self:
        """`from_source("csv", "people.csv", name_field="who")`: what `ScenarioList.from_source` reads, as agents."""
        scenarios = ScenarioList.from_source(source_type_or_data, *args, **options)
        agents = cls((_agent_of(scenario, name_field or "name") for scenario in scenarios.copies()), codebook)
        return agents if instructions is None else agents.add_instructions(instructions)

    @classmethod
    def from_scenario_list(cls, scenario_list: ScenarioList) -> Self:
        """One agent for each scenario, with its fields as traits; a field `name` becomes the agent's name."""
        return cls(_agent_of(scenario) for scenario in scenario_list.copies())

    def to_scenario_list(self) -> ScenarioList:
        """One scenario for each agent, with its traits as fields."""
        return ScenarioList(Scenario(agent.traits) for agent in self.copies())

    def to_dict(self, *, add_edsl_version: bool = False, full_dict: bool = False) -> dict[str, Any]:
        """The agents as JSON values, in RAM."""
        agents = [agent.to_dict(full_dict=full_dict) for agent in self.copies()]
        return {"agent_list": agents, **(_edsl_marks("AgentList") if add_edsl_version else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`; also for what EDSL writes."""
        agents = map(Agent.from_dict, _listed(data, "agent_list"))
        return cls(agents, data.get("codebook"), data.get("traits_presentation_template"))

    @property
    def names(self) -> list[str | int | None]:
        """The name of each agent, in RAM."""
        return [fields.get(NAME) for fields in self._rows()]

    @property
    def trait_keys(self) -> list[str]:
        """The traits that any agent has."""
        return self.field_names

    all_traits = trait_keys

    @property
    def codebook(self) -> dict[str, str]:
        """The codebook that all agents share; {} for none."""
        codebooks = [dict(settings.codebook) for settings in self.settings.entries]
        if any(codebook != codebooks[0] for codebook in codebooks):
            raise ListError("The agents have different codebooks.", fix="Give them one with set_codebook().")
        return codebooks[0] if codebooks else {}

    def set_codebook(self, codebook: Mapping[str, str]) -> None:
        """Give each agent of this list this codebook."""
        self._become(type(self)(self.copies(), codebook) if codebook else type(self)(_with(self, codebook={})))

    def set_traits_presentation_template(self, traits_presentation_template: str) -> None:
        """Give each agent of this list this template."""
        self._become(type(self)(self.copies(), traits_presentation_template=traits_presentation_template))

    def set_instruction(self, instruction: str) -> None:
        """Give each agent of this list this instruction."""
        self._become(type(self)(_with(self, instruction=instruction)))

    def add_instructions(self, instructions: str) -> Self:
        """`set_instruction`, and return this list."""
        self.set_instruction(instructions)
        return self

    def add_trait(self, trait: str, values: Any) -> Self:
        """Each agent with a further trait: one value for each agent, or one for all."""
        is_each = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
        if not is_each:
            return self._made(agent.add_trait(trait, values) for agent in self.copies())
        rows = row_shape.with_values(self._rows(), trait, cast("Iterable[Any]", values), self.what)
        return self._from_rows(rows)

    def remove_trait(self, trait: str) -> Self:
        """Each agent without a trait."""
        return self._made(agent.remove_trait(trait) for agent in self.copies())

    def translate_traits(self, codebook: Mapping[str, Mapping[Any, Any]]) -> Self:
        """Each agent with values replaced: `{"hair": {1: "brown"}}`."""
        return self._made(agent.translate_traits(codebook) for agent in self.copies())

    def with_names(
        self, *trait_keys: str, remove_traits: bool = True, separator: str = ",", force_name: bool = False
    ) -> Self:
        """Each agent with a name made of the values of these traits."""
        names = given_names(trait_keys)
        self._check_known(names, ())
        return self._made(
            _named(agent, names, separator, remove_traits=remove_traits, force=force_name) for agent in self.copies()
        )

    def give_names(
        self, *trait_keys: str, remove_traits: bool = True, separator: str = ",", force_name: bool = False
    ) -> None:
        """`with_names`, for this list itself."""
        self._become(
            self.with_names(*trait_keys, remove_traits=remove_traits, separator=separator, force_name=force_name)
        )

    def extend(self, items: Iterable[Agent]) -> None:
        """Add agents to this list, at its end."""
        self.settings = SettingsTable(self.settings.entries)  # a snapshot keeps the table it has
        super().extend(items)
        self.source.census.forget(SETTINGS)
        self._digest = None

    @classmethod
    def _from_source(cls, source: RowSource, codebook: Mapping[str, str] | None, instructions: str | None) -> Self:
        if SETTINGS in source.census.kinds:
            raise ListError(f"The file has a column {SETTINGS!r}.", fix="Give it another name: that one is taken.")
        listed = cls.of(source, SettingsTable([_shared_settings(codebook, None)]))
        return listed if instructions is None else cls(_with(listed, instruction=instructions))

    def _item(self, fields: Fields) -> Agent:
        return Agent.from_fields(fields, self.settings.of(fields))

    def _row(self, item: Agent) -> Fields:
        settings, shared = item.settings, self._shared
        if shared is not PLAIN:
            codebook, template = shared.codebook or settings.codebook, shared.template or settings.template
            settings = AgentSettings(codebook, template, settings.functions)
        number = self.settings.number(settings)
        fields = item.to_fields()
        return {**fields, SETTINGS: number} if number else fields

    def _state(self, item: Agent) -> Any:
        return super()._state(item), item.settings.key

    def _become(self, other: Any) -> None:
        self.source, self.settings, self._digest = other.source, other.settings, other._digest


class ScenarioList(RowList[Scenario]):
    """Scenarios, any number; plain dicts will do."""

    item, what, also = Scenario, "scenario", ' or dicts, like {"text": "..."}'

    def __init__(self, items: Iterable[Scenario | dict[str, Any]] | None = None) -> None:
        super().__init__(items)  # pyright: ignore[reportArgumentType]

    @classmethod
    def from_csv(cls, path: str | Path) -> Self:
        """One scenario a row, with the columns as its fields."""
        return cls.of(CsvSource(Path(path), {}))

    @classmethod
    def from_jsonl(cls, path: str | Path) -> Self:
        """One scenario a line, each a JSON object."""
        return cls.of(JsonlSource(Path(path), {}))

    @classmethod
    def from_list(cls, field_name: str, values: Iterable[Any], use_indexes: bool = False) -> Self:
        """One scenario for each value of one field: `ScenarioList.from_list("city", ["Oslo", "Lima"])`.

        `use_indexes` numbers them in a field `idx`.
        """
        _refuse_text(values)
        if use_indexes:
            return cls({field_name: value, "idx": number} for number, value in enumerate(values))
        return cls({field_name: value} for value in values)

    @classmethod
    def from_source(cls, source_type_or_data: Any, *args: Any, snakify: bool = True, **options: Any) -> Self:
        """Scenarios of a file, data frame, dict or list: `from_source("csv", "cities.csv")`, `from_source(frame)`.

        `snakify` writes the names of fields in small letters, digits and underscores, as texts can name them.
        """
        given = given_source(source_type_or_data, args, options)
        made = cls.of(given) if isinstance(given, (CsvSource, JsonlSource)) else cls(cast("Iterable[Fields]", given))
        return made.snakify() if snakify else made

    def snakify(self) -> Self:
        """Each scenario with small letters, digits and underscores in names: `Review Text` becomes `review_text`."""
        renames = snake_names(self.field_names)
        return self.rename(renames) if renames else self

    @classmethod
    def from_list_of_dicts(cls, data: Iterable[dict[str, Any]]) -> Self:
        """One scenario for each dict."""
        return cls(data)

    gen = from_list_of_dicts

    @classmethod
    def from_nested_dict(cls, data: Mapping[str, Sequence[Any]]) -> Self:
        """One scenario for each position of the lists: `{"a": [1, 2], "b": [3, 4]}` are two."""
        if len({len(values) for values in data.values()}) > 1:
            lengths = ", ".join(f"{name!r} has {len(values)}" for name, values in data.items())
            raise ListError(f"The lists differ in length: {lengths}.", fix="Give lists of one length.")
        return cls(dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True))

    def to_dict(self, *, add_edsl_version: bool = False) -> dict[str, Any]:
        """The scenarios as JSON values, in RAM."""
        scenarios = [scenario.to_dict() for scenario in self.copies()]
        return {"scenarios": scenarios, **(_edsl_marks("ScenarioList") if add_edsl_version else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`; also for what EDSL writes."""
        return cls(map(Scenario.from_dict, _listed(data, "scenarios")))

    def to_scenario_list(self) -> Self:
        return self

    def to_agent_list(self) -> AgentList:
        """One agent for each scenario, with its fields as traits; a field `name` becomes the agent's name."""
        return AgentList.from_scenario_list(self)

    @property
    def parameters(self) -> set[str]:
        """The fields that any scenario has."""
        return set(self.field_names)

    def add_value(self, name: str, value: Any) -> Self:
        """Each scenario with a further field that has the same value in all."""
        return self._from_rows({**fields, name: value} for fields in self._rows())

    def add_list(self, name: str, values: Iterable[Any]) -> Self:
        """Each scenario with a further field; as many values as scenarios."""
        return self._from_rows(row_shape.with_values(self._rows(), name, values, self.what))

    def transform(self, field: str, func: Callable[[Any], Any], new_name: str | None = None) -> Self:
        """Each scenario with `func(value)` in a field, or in a new one."""
        self._check_known([field], ())
        return self._from_rows(row_shape.transformed(self._rows(), field, func, new_name or field))

    def apply(self, func: Callable[[Any], Any], field: str, new_name: str | None = None, replace: bool = False) -> Self:
        """`transform`, with its arguments in another order; `replace` drops the old field."""
        made = self.transform(field, func, new_name)
        return made.drop(field) if replace and new_name not in (None, field) else made

    def unpack(self, field: str, new_names: Sequence[str] | None = None, keep_original: bool = True) -> Self:
        """Each scenario with the items of a list as fields of their own: `tags_0`, `tags_1`, or the names given."""
        self._check_known([field], ())
        names = new_names or [f"{field}_{number}" for number in range(len(self[0].get(field) or ()))]
        return self._from_rows(row_shape.unpacked_lists(self._rows(), field, names, keep=keep_original))

    def unpack_dict(self, field: str, prefix: str | None = None, drop_field: bool = False) -> Self:
        """Each scenario with the items of a dict as fields of their own."""
        self._check_known([field], ())
        return self._from_rows(row_shape.unpacked_dicts(self._rows(), field, prefix or "", drop_field=drop_field))

    def concatenate(
        self,
        fields: Sequence[str],
        separator: str = ";",
        prefix: str = "",
        postfix: str = "",
        new_field_name: str | None = None,
    ) -> Self:
        """Each scenario with one text in place of these fields."""
        return self._joined(
            fields,
            new_field_name,
            lambda values: separator.join(f"{prefix}{value}{postfix}" for value in values),
        )

    def concatenate_to_list(
        self, fields: Sequence[str], prefix: str = "", postfix: str = "", new_field_name: str | None = None
    ) -> Self:
        """Each scenario with one list in place of these fields."""
        if prefix or postfix:
            return self._joined(fields, new_field_name, lambda values: [f"{prefix}{each}{postfix}" for each in values])
        return self._joined(fields, new_field_name, list)

    def unpivot(self, id_vars: Sequence[str] | None = None, value_vars: Sequence[str] | None = None) -> Self:
        """One scenario for each field of each scenario: its name as `variable`, its value as `value`."""
        ids = list(id_vars or ())
        names = [name for name in self.field_names if name not in ids] if value_vars is None else list(value_vars)
        self._check_known([*ids, *names], ())
        return self._from_rows(row_shape.unpivoted(self._rows(), ids, names))

    def fillna(self, value: Any = "") -> Self:
        """Each scenario with a value where it has none."""
        return self._from_rows(row_shape.filled(self._rows(), value))

    def replace_values(self, replacements: Mapping[str, Any]) -> Self:
        """Each scenario with values replaced: `{"1": "one"}` stands for the number and the text."""
        return self._from_rows(row_shape.replaced(self._rows(), replacements))

    def replace_names(self, new_names: Sequence[str]) -> Self:
        """Each scenario with other names for its fields, in their order."""
        if len(new_names) != len(self.field_names):
            raise ListError(
                f"{len(new_names)} names are given for {len(self.field_names)} fields.", fix="Give one for each field."
            )
        return self.rename(dict(zip(self.field_names, new_names, strict=True)))

    def reorder_keys(self, new_order: Sequence[str]) -> Self:
        """Each scenario with its fields in this order."""
        return self.keep(list(new_order))

    def __rmul__(self, other: Scenario) -> Self:
        return self * other

    def _joined(self, fields: Sequence[str], new: str | None, join: Callable[[list[Any]], Any]) -> Self:
        if isinstance(fields, str):
            raise ListError(f"{fields!r} is one field.", fix="Give a list of fields.")
        self._check_known(fields, ())
        name = new or f"concat_{'_'.join(fields)}"
        return self._from_rows(row_shape.concatenated(self._rows(), fields, name, join))

    def _rows_of(self, items: Iterable[Scenario], first: int = 0) -> Iterator[Fields]:
        # A plain dict says all that a scenario is.
        return super()._rows_of((Scenario(item) if type(item) is dict else item for item in items), first)


def _shared_settings(codebook: Mapping[str, str] | None, template: str | None) -> AgentSettings:
    return Agent(codebook=codebook, traits_presentation_template=template).settings


def _with(agents: AgentList, **parts: Any) -> Iterator[Agent]:
    for agent in agents.copies():
        for part, value in parts.items():
            setattr(agent, part, value)
        yield agent


def _named(agent: Agent, traits: Sequence[str], separator: str, *, remove_traits: bool, force: bool) -> Agent:
    if agent.name is not None and not force:
        raise ListError(f"The agent {agent.name!r} has a name.", fix="Write force_name=True to give it another one.")
    name = separator.join(str(agent.traits.get(trait)) for trait in traits)
    kept = {trait: value for trait, value in agent.traits.items() if trait not in traits or not remove_traits}
    return Agent(
        kept, name, agent.codebook, agent.instruction, traits_presentation_template=agent.traits_presentation_template
    )


def _agent_of(scenario: Scenario, name_field: str = "name") -> Agent:
    traits = dict(scenario)
    parameters: dict[str, Any] = traits.pop("agent_parameters", None) or {}
    name = traits.pop(name_field, None)
    return Agent(traits, parameters.get("name", name), None, parameters.get("instruction"))


def _listed(data: Mapping[str, Any], part: str) -> Iterable[Any]:
    held = data.get(part) if isinstance(data, Mapping) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if not isinstance(held, list):
        raise ListError(f"The data has no list {part!r}.", fix="Give what to_dict() returned.")
    return cast("list[Any]", held)


def _edsl_marks(name: str) -> dict[str, str]:
    return {"edsl_version": "1.0.9", "edsl_class_name": name}


def _refuse_text(values: object) -> None:
    if isinstance(values, str):
        raise ListError(f"{values!r} is one text, not a list.", fix="Put it in brackets.")


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

    def _repr_html_(self) -> str:
        """Without their parameters: a key may be among them, and notebooks are passed on."""
        rows = [(model.name, model.service_name) for model in self[:SHOWN_ROWS]]
        return html_table(("model", "service"), rows, first_of(len(rows), len(self), "model"))


def _model_fields(model: Model) -> Fields:
    return {**model.parameters, "model_name": model.name, "model": model.name, "service_name": model.service_name}


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
