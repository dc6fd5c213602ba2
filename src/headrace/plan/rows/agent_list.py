"""A list of agents of any length. Covers: what it has beside the verbs of all lists: settings, names, instructions.

Does not cover: the verbs that lists of agents and of scenarios share (plan.rows.row_list).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Self, cast

from headrace.errors import ListError, nearest
from headrace.plan.identity import digest
from headrace.plan.rows import row_shape
from headrace.plan.rows.dict_form import edsl_marks, listed, refuse_text
from headrace.plan.rows.given_sources import snake_names
from headrace.plan.rows.joined_lists import JoinKind
from headrace.plan.rows.list_readers import AgentParts, OpenRows
from headrace.plan.rows.row_list import Change, RowList
from headrace.plan.rows.scenario_list import ScenarioList
from headrace.plan.sources.csv_file import CsvSource
from headrace.plan.sources.jsonl_file import JsonlSource
from headrace.plan.sources.row_source import RowSource
from headrace.survey.agent import AGENT_PARTS, INSTRUCTION, NAME, Agent
from headrace.survey.people.agent_settings import PLAIN, SETTINGS, AgentSettings, SettingsTable
from headrace.survey.people.field_verbs import check_known, dropped, given_names
from headrace.survey.people.misspelt_names import warn_of_misspelt
from headrace.survey.scenario import Scenario
from headrace.survey.values import Fields


class AgentList(RowList[Agent]):
    """Agents, any number. `codebook` and `traits_presentation_template` are given to each; the list holds them once."""

    item, what, parts = Agent, "agent", AGENT_PARTS
    also = "; AgentList.from_source(dicts) makes them of dicts"

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
        warn_of_misspelt(self._shared.codebook, self.field_names)
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
    def from_csv(
        cls,
        file_path: str | Path,
        name_field: str | None = None,
        codebook: Mapping[str, str] | None = None,
        instructions: str | None = None,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
    ) -> Self:
        """One agent a row, with the columns as its traits; `delimiter` and `encoding` as in `ScenarioList.from_csv`.

        The column called `name_field` becomes the agent's name; where none is given, `agent_name` or else `name`.
        """
        rename = {name_field: NAME} if name_field else _name_column
        source = CsvSource(Path(file_path), rename, delimiter=delimiter, encoding=encoding)
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
        parts = AgentParts(name_field=name_field, codebook=codebook, instructions=instructions)
        return cls._read(lambda rename: JsonlSource(Path(source), rename), parts)

    @classmethod
    def from_list(cls, trait_name: str, values: Iterable[Any], codebook: Mapping[str, str] | None = None) -> Self:
        """One agent for each value of one trait."""
        refuse_text(values)
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
        return cls._of_scenarios(scenarios, name_field, codebook, instructions)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        name_field: str | None = None,
        codebook: Mapping[str, str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """One agent a row of a data frame, of pandas or polars; names as in `from_csv`."""
        return cls._of_scenarios(ScenarioList.from_pandas(frame), name_field, codebook, instructions)

    from_polars = from_pandas

    @classmethod
    def from_list_of_tuples(
        cls,
        trait_names: Sequence[str],
        values: Iterable[Sequence[Any]],
        name_field: str | None = None,
        codebook: Mapping[str, str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """One agent for each tuple: `from_list_of_tuples(["age", "city"], [(36, "Oslo")])`; names as in `from_csv`."""
        scenarios = ScenarioList.from_list_of_tuples(trait_names, values)
        return cls._of_scenarios(scenarios, name_field, codebook, instructions)

    @classmethod
    def from_nested_dict(
        cls, data: Mapping[str, Any], id_field: str | None = None, codebook: Mapping[str, str] | None = None
    ) -> Self:
        """What `ScenarioList.from_nested_dict` reads, as agents; names as in `from_csv`."""
        return cls._of_scenarios(ScenarioList.from_nested_dict(data, id_field), None, codebook, None)

    @classmethod
    def from_results(cls, results: Any, *columns: str) -> Self:
        """One agent for each interview of a run, with these columns of its results as traits; by default the agent's
        own traits and name, and the answers.
        """
        return results.select(*columns or ("agent.*", "answer.*")).to_agent_list()

    @classmethod
    def example(cls, randomize: bool = False, codebook: Mapping[str, str] | None = None) -> Self:
        """Two agents to try things out with."""
        return cls([Agent.example(randomize), Agent.example(randomize)], codebook)

    @classmethod
    def _of_scenarios(
        cls,
        scenarios: ScenarioList,
        name_field: str | None,
        codebook: Mapping[str, str] | None,
        instructions: str | None,
    ) -> Self:
        known = [*scenarios.source.census.kinds]
        if name_field and name_field not in known:
            name_field = snake_names([name_field]).get(name_field, name_field)  # the fields may have been snakified
            check_known([name_field], known, "The data has no")
        agents = cls((_agent_of(scenario, name_field) for scenario in scenarios.copies()), codebook)
        return agents if instructions is None else agents.add_instructions(instructions)

    @classmethod
    def from_scenario_list(cls, scenario_list: ScenarioList) -> Self:
        """One agent for each scenario, with its fields as traits; a field `name` becomes the agent's name."""
        return cls(_agent_of(scenario) for scenario in scenario_list.copies())

    def to_scenario_list(self) -> ScenarioList:
        """One scenario for each agent, with its traits as fields."""
        return ScenarioList(Scenario(agent.traits) for agent in self.copies())

    def to_dict(self, *, add_edsl_version: bool = False, full_dict: bool = False) -> dict[str, Any]:
        """The agents as JSON values, in RAM; a codebook or a template that all of them have stands there once."""
        agents = [agent.to_dict(full_dict=full_dict) for agent in self.copies()]
        shared = self.settings.entries[0].to_dict() if len(self.settings.entries) == 1 and not full_dict else {}
        once = {"codebook": shared.get("codebook"), "traits_presentation_template": shared.get("template")}
        once = {part: value for part, value in once.items() if value is not None}
        for agent, part in product(agents, once):
            del agent[part]
        return {"agent_list": agents, **once, **(edsl_marks("AgentList") if add_edsl_version else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`; also for what EDSL writes."""
        agents = map(Agent.from_dict, listed(data, "agent_list"))
        return cls(agents, data.get("codebook"), data.get("traits_presentation_template"))

    @classmethod
    def from_edsl(cls, given: Any) -> Self:
        """The agents that EDSL holds: an object, a dict, JSON text or a file, of any length; see `Survey.from_edsl`."""
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given)

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

    def join(self, other: Self, join_type: str = "inner") -> Self:
        """Agents of both lists that have one name, with the traits of both: `"inner"`, `"left"` or `"right"`."""
        kinds = {kind.value: kind for kind in JoinKind}
        if join_type not in kinds:
            raise ListError(f"There is no join {join_type!r}.", fix=nearest(join_type, kinds))
        return self._joining(other, NAME, kinds[join_type])

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
        entries = self.settings.entries or ((PLAIN,) if len(self) else ())  # the first entry is that of its agents
        self.settings = SettingsTable(entries)  # a snapshot keeps the table it has
        super().extend(items)
        self.source.census.forget(SETTINGS)
        self._digest = None

    def __add__(self, other: Any) -> Self:
        made = self.snapshot()
        made._shared = PLAIN  # this list's codebook and template are its own agents'
        made.extend(self._given(other))
        return made

    @classmethod
    def _read(cls, open_rows: OpenRows, parts: AgentParts) -> Self:
        name_field = parts.get("name_field")
        rows = open_rows({name_field: NAME} if name_field else _name_column)
        if name_field and NAME not in rows.field_names and rows.length:
            raise ListError(f"No row has {name_field!r}.", fix=nearest(name_field, rows.field_names))
        return cls._from_source(rows, parts.get("codebook"), parts.get("instructions"))

    @classmethod
    def _from_source(cls, source: RowSource, codebook: Mapping[str, str] | None, instructions: str | None) -> Self:
        if SETTINGS in source.field_names:
            raise ListError(f"The file has a column {SETTINGS!r}.", fix="Give it another name: that one is taken.")
        listed = cls.of(source, SettingsTable([_shared_settings(codebook, None)]))
        warn_of_misspelt(codebook or {}, listed.field_names)
        return listed if instructions is None else cls(_with(listed, instruction=instructions))

    def _each(self, change: Change, field_names: Collection[str] | None = None) -> Self:
        by_agent = cast("Callable[[Agent], Agent]", change)
        if self.settings.to_row():  # the new list holds the settings of its own agents, which only a pass can tell
            return self._made(map(by_agent, self.copies()))
        return self._derived(lambda rows: (by_agent(self._item(fields)).to_fields() for fields in rows), field_names)

    def _deriving(self, make: Callable[[], Iterable[Fields]], field_names: Collection[str] | None) -> Self:
        if self.settings.to_row():
            return self._from_rows(make())
        return super()._deriving(lambda: (self._item(fields).to_fields() for fields in make()), field_names)

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
    named = agent.duplicate()
    named.name = separator.join(str(agent.traits.get(trait)) for trait in traits)
    if remove_traits:
        named.traits = dropped(agent.traits, traits)
    return named


def _name_column(names: Collection[str]) -> dict[str, str]:
    """What becomes an agent's name where the user names no column: `agent_name`, or else `name`, as in EDSL."""
    return {"name": NAME} if "name" in names and NAME not in names else {}


def _agent_of(scenario: Scenario, name_field: str | None = None) -> Agent:
    traits = dict(scenario)
    parameters: dict[str, Any] = traits.pop("agent_parameters", None) or {}
    name = traits.pop(name_field or (NAME if NAME in traits else "name"), None)
    instruction = traits.pop(INSTRUCTION, None)
    name, instruction = parameters.get("name", name), parameters.get("instruction", instruction)
    # An empty cell of a CSV file is no name.
    return Agent(traits, None if name == "" else name, None, instruction or None)
