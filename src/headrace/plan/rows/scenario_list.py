"""A list of scenarios of any length. Covers: what it has beside the verbs of all lists: verbs for its fields.

Does not cover: the verbs that lists of agents and of scenarios share (plan.rows.row_list).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from headrace.errors import ListError
from headrace.plan.rows import row_combinations, row_groups, row_shape
from headrace.plan.rows.data_frames import check_data_frame, records
from headrace.plan.rows.derived import spooled
from headrace.plan.rows.dict_form import edsl_marks, listed, refuse_text
from headrace.plan.rows.file_rows import files_of, with_files
from headrace.plan.rows.given_sources import given_source, snake_names
from headrace.plan.rows.list_readers import AgentParts, OpenRows
from headrace.plan.rows.row_list import RowList
from headrace.plan.sources.csv_file import CsvSource
from headrace.plan.sources.given_paths import is_directory
from headrace.plan.sources.jsonl_file import JsonlSource
from headrace.survey.people.field_verbs import given_names
from headrace.survey.scenario import Scenario
from headrace.survey.values import Fields

if TYPE_CHECKING:
    from headrace.plan.rows.agent_list import AgentList


class ScenarioList(RowList[Scenario]):
    """Scenarios, any number; plain dicts will do."""

    item, what, also = Scenario, "scenario", ' or dicts, like {"text": "..."}'
    _agent_parts = ()

    def __init__(self, items: Iterable[Scenario | dict[str, Any]] | None = None) -> None:
        super().__init__(items)  # pyright: ignore[reportArgumentType]

    @classmethod
    def from_csv(cls, path: str | Path, *, delimiter: str | None = None, encoding: str | None = None) -> Self:
        """One scenario a row, with the columns as its fields.

        The delimiter is found in the first lines, and the encoding is UTF-8 or what the file begins with says, unless
        they are named: `from_csv("old.csv", delimiter="|", encoding="cp1252")`.
        """
        return cls.of(CsvSource(Path(path), {}, delimiter=delimiter, encoding=encoding))

    @classmethod
    def from_jsonl(cls, path: str | Path) -> Self:
        """One scenario a line, each a JSON object."""
        return cls.of(JsonlSource(Path(path), {}))

    @classmethod
    def from_file(cls, path: str | Path, **reading: Any) -> Self:
        """One scenario a row of a file; of a directory, one for each file in it and in those below it.

        The file's name tells its format; parameters and other places that rows are read from: `RowList.from_file`.
        """
        if is_directory(path) and all(value is None for value in reading.values()):
            return cls.from_directory(path, recursive=True)
        return super().from_file(path, **reading)

    @classmethod
    def from_directory(
        cls, path: str | Path, recursive: bool | None = None, key_name: str = "content", glob: str | None = None
    ) -> Self:
        """One scenario for each file of a directory, in the field `key_name`: pictures, documents, texts.

        `recursive=True` looks into directories in it too; otherwise those are passed over, with a word where nothing
        is said about them. `glob` chooses by name: `"*.png"`.
        """
        return cls({key_name: file} for file in files_of(path, recursive=recursive, glob=glob))

    def with_files(self, *field_names: str, folder: str | Path = ".") -> Self:
        """Each scenario with files in place of these fields, which hold their paths, seen from `folder`.

        A row without a path is refused: `rows.filter("photo")` leaves such rows out before.
        """
        made = self
        for name in field_names:
            made._check_known([name], ())
            made = made._from_rows(with_files(made._rows(), name, Path(folder)))
        return made

    @classmethod
    def from_list(cls, field_name: str, values: Iterable[Any], use_indexes: bool = False) -> Self:
        """One scenario for each value of one field: `ScenarioList.from_list("city", ["Oslo", "Lima"])`.

        `use_indexes` numbers them in a field `idx`.
        """
        refuse_text(values)
        if use_indexes:
            return cls({field_name: value, "idx": number} for number, value in enumerate(values))
        return cls({field_name: value} for value in values)

    @classmethod
    def from_source(cls, source_type_or_data: Any, *args: Any, snakify: bool = True, **options: Any) -> Self:
        """Scenarios of a file, data frame, dict or list: `from_source("csv", "cities.csv")`, `from_source(frame)`.

        `snakify` writes the names of fields in small letters, digits and underscores, as texts can name them.
        """
        given = given_source(source_type_or_data, args, options)
        made = cls(given) if isinstance(given, Iterable) else cls.of(given)
        return made.snakify() if snakify else made

    @classmethod
    def from_pandas(cls, frame: Any) -> Self:
        """One scenario a row of a data frame, of pandas or polars, with the columns as its fields."""
        check_data_frame(frame)
        return cls(records(frame))

    @classmethod
    def from_list_of_tuples(
        cls, field_names: Sequence[str], values: Iterable[Sequence[Any]], use_indexes: bool = False
    ) -> Self:
        """One scenario for each tuple: `from_list_of_tuples(["city", "year"], [("Oslo", 2020), ("Lima", 2025)])`."""
        refuse_text(field_names)
        rows = given_source("list_of_tuples", (field_names, values), {"use_indexes": use_indexes})
        return cls(cast("Iterable[Fields]", rows))

    from_polars = from_pandas

    @classmethod
    def example(cls, randomize: bool = False) -> Self:
        """Two scenarios to try things out with."""
        return cls([Scenario.example(randomize), Scenario.example(randomize)])

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
    def from_nested_dict(cls, data: Mapping[str, Any], id_field: str | None = None) -> Self:
        """One scenario for each position of the lists: `{"a": [1, 2], "b": [3, 4]}` are two; or for each dict:
        `from_nested_dict({"x": {"a": 1}, "y": {"a": 2}}, id_field="key")` are two, with its key in a field.
        """
        if data and all(isinstance(value, Mapping) for value in data.values()):
            return cls({**value, **({id_field: key} if id_field else {})} for key, value in data.items())
        if len({len(values) for values in data.values()}) > 1:
            lengths = ", ".join(f"{name!r} has {len(values)}" for name, values in data.items())
            raise ListError(f"The lists differ in length: {lengths}.", fix="Give lists of one length.")
        return cls(dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True))

    @classmethod
    def from_results(cls, results: Any, *columns: str) -> Self:
        """One scenario for each interview of a run: these columns of its results, or all fields and answers.

        `from_results(results, "scenario.*", "answer.mood")`; names are without what stands before the dot.
        """
        return results.select(*columns or ("agent.*", "scenario.*", "answer.*")).to_scenario_list()

    def to_dict(self, *, add_edsl_version: bool = False) -> dict[str, Any]:
        """The scenarios as JSON values, in RAM."""
        scenarios = [scenario.to_dict() for scenario in self.copies()]
        return {"scenarios": scenarios, **(edsl_marks("ScenarioList") if add_edsl_version else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`; also for what EDSL writes."""
        return cls(map(Scenario.from_dict, listed(data, "scenarios")))

    @classmethod
    def from_edsl(cls, given: Any, *, files: str | Path | None = None) -> Self:
        """The scenarios that EDSL holds: an object, a dict, JSON text or a file; see `Survey.from_edsl`.

        Pictures and documents in them are written into the folder `files`; unless given, beside EDSL's file.
        """
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given, files=files)

    def to_scenario_list(self) -> Self:
        return self

    def to_agent_list(self) -> AgentList:
        """One agent for each scenario, with its fields as traits; a field `name` becomes the agent's name."""
        from headrace.plan.rows.agent_list import AgentList  # which knows this class

        return AgentList.from_scenario_list(self)

    @property
    def parameters(self) -> set[str]:
        """The fields that any scenario has."""
        return set(self.field_names)

    def group_by(
        self, id_vars: Sequence[str], variables: Sequence[str], func: Callable[..., Mapping[str, Any]]
    ) -> Self:
        """A scenario for each combination of the `id_vars`, with the fields that `func` returns.

        It is given a list of values for each of the `variables`: one group at a time is in RAM.
        """
        ids, names = given_names((id_vars,)), given_names((variables,))
        self._check_known([*ids, *names], ())
        return self._from_rows(row_groups.aggregated(self._rows(), ids, names, func))

    def give_valid_names(self, existing_codebook: Mapping[str, str] | None = None) -> Self:
        """Each scenario with other names for the fields that a text cannot name; the codebook's where it has one."""
        renames = {**snake_names(self.field_names), **(existing_codebook or {})}
        invalid = {name: renames[name] for name in self.field_names if not name.isidentifier() and name in renames}
        return self.rename(invalid) if invalid else self

    def add_value(self, name: str, value: Any) -> Self:
        """Each scenario with a further field that has the same value in all."""
        return self._derived(lambda rows: ({**fields, name: value} for fields in rows))

    def add_list(self, name: str, values: Iterable[Any]) -> Self:
        """Each scenario with a further field; as many values as scenarios."""
        return self._from_rows(row_shape.with_values(self._rows(), name, values, self.what))

    def transform(self, field: str, func: Callable[[Any], Any], new_name: str | None = None) -> Self:
        """Each scenario with `func(value)` in a field, or in a new one."""
        self._check_known([field], ())
        return self._from_rows(row_shape.transformed(self._rows(), field, func, new_name or field))

    def uniquify(self, field: str) -> Self:
        """Each scenario with a value of its own in a field: equal ones become `item`, `item_1`, `item_2`."""
        self._check_known([field], ())
        return self._derived(lambda rows: row_groups.told_apart(rows, field), self.source.field_names)

    def apply(self, func: Callable[[Any], Any], field: str, new_name: str | None = None, replace: bool = False) -> Self:
        """`transform`, with its arguments in another order; `replace` drops the old field."""
        made = self.transform(field, func, new_name)
        return made.drop(field) if replace and new_name not in (None, field) else made

    def unpack(self, field: str, new_names: Sequence[str] | None = None, keep_original: bool = True) -> Self:
        """Each scenario with the items of a list as fields of their own: `tags_0`, `tags_1`, or the names given."""
        self._check_known([field], ())
        names = new_names or [f"{field}_{number}" for number in range(len(self[0].get(field) or ()))]
        return self._derived(lambda rows: row_shape.unpacked_lists(rows, field, names, keep=keep_original))

    def unpack_dict(self, field: str, prefix: str | None = None, drop_field: bool = False) -> Self:
        """Each scenario with the items of a dict as fields of their own."""
        self._check_known([field], ())
        return self._derived(lambda rows: row_shape.unpacked_dicts(rows, field, prefix or "", drop_field=drop_field))

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
        return self._derived(lambda rows: row_shape.unpivoted(rows, ids, names), [*ids, "variable", "value"])

    def pivot(
        self, id_vars: Sequence[str] | None = None, var_name: str = "variable", value_name: str = "value"
    ) -> Self:
        """The reverse of `unpivot`: one scenario for each combination of the `id_vars`, by default all other fields."""
        ids = [name for name in self.field_names if name not in (var_name, value_name)] if id_vars is None else id_vars
        self._check_known([*ids, var_name, value_name], ())
        return self._derived(lambda rows: row_groups.pivoted(rows, list(ids), var_name, value_name))

    def collapse(
        self, field: str, separator: str | None = None, prefix: str = "", postfix: str = "", add_count: bool = False
    ) -> Self:
        """One scenario for each combination of the other fields, with a list of this field's values, or one text where
        a separator is given; `add_count` adds `num_collapsed_rows`.
        """
        self._check_known([field], ())
        names = [name for name in self.field_names if name != field]

        def change(value: Any) -> str:
            return f"{prefix}{value}{postfix}"

        is_changed = separator is not None or prefix or postfix
        count = "num_collapsed_rows" if add_count else None
        return self._derived(
            lambda rows: row_groups.collapsed(rows, names, field, change if is_changed else None, separator, count),
            [*names, field, *([count] if count else [])],
        )

    def create_comparisons(
        self,
        bidirectional: bool = False,
        num_options: int = 2,
        option_prefix: str = "option_",
        use_alphabet: bool = False,
    ) -> Self:
        """One scenario for each choice of so many of these, each a dict in a field: `option_1`, ..., or `A`, `B`, ...

        `bidirectional` has each order of them. They are made one by one, as they are asked for.
        """
        row_combinations.check_count(num_options, 2, "num_options")
        labels = row_combinations.labels(num_options, option_prefix, use_alphabet=use_alphabet)
        source = self.source

        def made() -> Iterator[Fields]:
            chosen = row_combinations.combinations(spooled(source), num_options, in_any_order=bidirectional)
            return row_combinations.compared(chosen, labels)

        return self._deriving(made, labels)

    def choose_k(self, k: int, order_matters: bool = False) -> Self:
        """One scenario for each choice of `k` of these, which have one field: `city_1`, `city_2`, ..."""
        row_combinations.check_count(k, 1, "k")
        source = self.source

        def made() -> Iterator[Fields]:
            chosen = row_combinations.combinations(spooled(source), k, in_any_order=order_matters)
            return row_combinations.numbered(chosen)

        return self._deriving(made, None)

    def zip(self, field_a: str, field_b: str, new_name: str) -> Self:
        """Each scenario with a further field: a dict of the items of two lists, keys and values."""
        self._check_known([field_a, field_b], ())
        return self._derived(lambda rows: row_shape.zipped(rows, field_a, field_b, new_name))

    def concatenate_to_set(
        self, fields: Sequence[str], prefix: str = "", postfix: str = "", new_field_name: str | None = None
    ) -> Self:
        """Each scenario with one list in place of these fields, which has each value once."""

        def join(values: list[Any]) -> list[Any]:
            texts = [f"{prefix}{each}{postfix}" for each in values] if prefix or postfix else values
            return [each for place, each in enumerate(texts) if each not in texts[:place]]

        return self._joined(fields, new_field_name, join)

    def fillna(self, value: Any = "") -> Self:
        """Each scenario with a value where it has none."""
        return self._derived(lambda rows: row_shape.filled(rows, value), self.source.field_names)

    def replace_values(self, replacements: Mapping[str, Any]) -> Self:
        """Each scenario with values replaced: `{"1": "one"}` stands for the number and the text."""
        return self._derived(lambda rows: row_shape.replaced(rows, replacements), self.source.field_names)

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

    @classmethod
    def _read(cls, open_rows: OpenRows, parts: AgentParts) -> Self:
        if parts:
            raise ListError(
                f"Scenarios have no {' or '.join(parts)}.", fix="Agents do: AgentList has the same methods."
            )
        return cls.of(open_rows({}))

    def __rmul__(self, other: Scenario) -> Self:
        return self * other

    def _joined(self, fields: Sequence[str], new: str | None, join: Callable[[list[Any]], Any]) -> Self:
        if isinstance(fields, str):
            raise ListError(f"{fields!r} is one field.", fix="Give a list of fields.")
        self._check_known(fields, ())
        name = new or f"concat_{'_'.join(fields)}"
        return self._derived(lambda rows: row_shape.concatenated(rows, fields, name, join))

    def _rows_of(self, items: Iterable[Scenario], first: int = 0) -> Iterator[Fields]:
        # A plain dict says all that a scenario is.
        return super()._rows_of((Scenario(item) if type(item) is dict else item for item in items), first)
