"""A list of agents or scenarios of any length, and its verbs; what both kinds of lists share.

Covers: reading items one by one or by position, and the verbs, which hand over to `plan.rows` and make a new list.
Does not cover: what only agents or only scenarios have (plan.rows.agent_list, plan.rows.scenario_list), or where rows
lie (plan.sources, plan.rows.spool).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, SupportsIndex, TypeAlias, TypeVar, cast, overload

from headrace.display import SHOWN_ROWS, counted, first_of, html_note, html_table
from headrace.errors import HeadraceError, ListError
from headrace.plan.rows import row_groups, row_order, row_shape
from headrace.plan.rows.derived import DerivedRows, depth_of, fields_of, shallow, spooled
from headrace.plan.rows.joined_lists import JoinKind, joined_rows
from headrace.plan.rows.list_exports import ListExports
from headrace.plan.rows.list_readers import ListReaders
from headrace.plan.rows.row_expressions import WITH_FUNCTIONS, assignment, condition
from headrace.plan.rows.spool import Spool
from headrace.plan.sources.row_source import FileSource, RowSource
from headrace.stand_ins import HostedVerbs
from headrace.survey.agent import INSTRUCTION, NAME, Agent
from headrace.survey.people.agent_settings import SETTINGS
from headrace.survey.people.field_verbs import check_distinct, check_known, given_names, given_renames, kept, renamed
from headrace.survey.scenario import Scenario
from headrace.survey.values import Fields, decode_fields, encode_fields

if TYPE_CHECKING:
    from headrace.plan.rows.row_table import RowTable

Item = TypeVar("Item", Agent, Scenario)
Change: TypeAlias = Callable[[Agent | Fields], Agent | Fields]  # of an agent, or of a scenario's fields


class RowList(HostedVerbs, ListReaders, ListExports, Generic[Item]):
    """A list whose items are read one by one from their source. An iterator is consumed once, here.

    What a `for` loop changes in an item changes the list: `for agent in agents: agent.instruction = "Be brief."` An
    item that is taken out by its position is a copy.
    """

    item: type[Item]
    what: str
    also: str = ""  # what else an item may be given as
    parts: tuple[str, ...] = ()  # what `keep` and `drop` know beside fields

    def __init__(self, items: Iterable[Item] | None = None) -> None:
        given = () if items is None else items
        if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"A list of {self.what}s cannot be made of {items!r}.", fix="Give a list of them.")
        self.source: RowSource = Spool(self._rows_of(given), self.what)

    @classmethod
    def of(cls, source: RowSource) -> Self:
        """A list of the rows of this source."""
        made = cls.__new__(cls)
        made.source = source
        return made

    def save(self, path: str | Path) -> None:
        """Write the list to a `.yaml` or `.json` file, which `load` reads; it is held in RAM meanwhile."""
        from headrace.plan.study_files import save

        save(cast(Any, self), path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` has written. Nothing in it is executed."""
        from headrace.plan.study_files import load

        return load(cast(Any, cls), path)

    def snapshot(self) -> Self:
        """The list as it is now: what is appended later is not in it. It shares the rows."""
        made = self.__new__(type(self))
        vars(made).update(self.__dict__)
        return made

    def __copy__(self) -> Self:
        return self.snapshot()

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self.snapshot()  # rows are bytes, which never change

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ListError(
            f"A list of {self.what}s is not pickled: its rows may lie in files, and be more than memory holds.",
            fix='Write it, save("list.json") or to_jsonl("list.jsonl"), and read it there: load(), from_jsonl().',
        )

    @property
    def digest(self) -> str:
        """What the list holds, as a digest: by it a plan knows its lists."""
        return self.source.digest

    @property
    def field_names(self) -> list[str]:
        """The fields or traits that any of its items has, in the order they were met."""
        return [name for name in self.source.field_names if name not in (NAME, INSTRUCTION)]

    def __len__(self) -> int:
        return self.source.length

    def __iter__(self) -> Iterator[Item]:
        changed: Self | None = None  # the list with what the loop has changed so far
        source, position, item, before = self.source, -1, None, None
        try:
            for position, item in enumerate(self.copies()):
                before = self._state(item)
                yield item
                changed, item = self._with_changed(changed, position, item, before), None
        finally:
            if item is not None:  # the loop was left
                changed = self._with_changed(changed, position, item, before)
            if changed is not None and self.source is source:
                changed.extend(islice(self.copies(), position + 1, None))
                self._become(changed)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Item | Self:
        if isinstance(index, slice):
            positions = range(len(self))[index]
            if positions.step < 0:
                return self._picked(positions)
            return self._made(islice(self.copies(positions.start), 0, len(positions) * positions.step, positions.step))
        try:
            position = range(len(self))[index]
        except IndexError:
            raise IndexError(f"The list has {counted(len(self), self.what)}: there is no {index}.") from None
        return next(self.copies(position))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)) or len(self) != len(other):
            return NotImplemented if not isinstance(other, RowList) else False
        return all(ours == theirs for ours, theirs in zip(self.copies(), other.copies(), strict=True))

    __hash__ = None  # pyright: ignore[reportAssignmentType] # it can be appended to

    def __add__(self, other: Any) -> Self:
        made = self.snapshot()
        made.extend(self._given(other))  # which goes on where this list's rows lie, and copies none
        return made

    def __mul__(self, other: Any) -> Self:
        """Each item together with each of the other list's; this list's are the slower ones."""
        others = self._made(self._given(other))
        return self._made(cast(Item, ours + theirs) for ours in self.copies() for theirs in others.copies())  # pyright: ignore[reportOperatorIssue]

    def at(self, index: int) -> Item:
        return self[index]

    def first(self) -> Item:
        return self[0]

    def last(self) -> Item:
        return self[-1]

    def append(self, item: Item) -> None:
        """Add one item to this list, at its end."""
        self.extend([item])

    def extend(self, items: Iterable[Item]) -> None:
        """Add items to this list, at its end."""
        self.source = spooled(self.source).extended(self._rows_of(items, len(self)), self.what)

    def rename(self, old_name: str | Mapping[str, str], new_name: str | None = None) -> Self:
        """`rename("age", "years")` or `rename({"age": "years"})`. An item without the field stays as it is."""
        renames = given_renames(old_name, new_name)
        self._check_known(renames, ())
        names = [renames.get(name, name) for name in self.source.field_names]
        return self._each(lambda item: _renamed(item, renames), names)

    def keep(self, *field_names: str | list[str]) -> Self:
        """Each item with these fields alone."""
        names = given_names(field_names)
        self._check_known(names, self.parts)
        known = self.source.field_names
        return self._each(lambda item: _kept(item, names), [name for name in dict.fromkeys(names) if name in known])

    def select(self, *field_names: str | list[str]) -> Self:
        """`keep`, under its other name."""
        return self.keep(*field_names)

    def drop(self, *field_names: str | list[str]) -> Self:
        """Each item without these fields."""
        names = given_names(field_names)
        self._check_known(names, self.parts)
        return self._each(
            lambda item: _dropped(item, names), [name for name in self.source.field_names if name not in names]
        )

    def filter(self, expression: str) -> Self:
        """The items for which an expression holds: `filter("age > 30 and city == 'Oslo'")`."""
        holds = condition(expression, self.what, self._expression_names())
        return self._derived(lambda rows: filter(holds, rows), self.source.field_names)

    def mutate(self, new_var_string: str, functions_dict: Mapping[str, Any] | None = None) -> Self:
        """Each item with a computed field: `mutate("double = x * 2")`. None where it cannot be computed.

        `functions_dict` is EDSL's, and refused: an expression calls no functions.
        """
        if functions_dict:
            raise ListError("mutate takes no functions.", fix=WITH_FUNCTIONS)
        name, value = assignment(new_var_string, self.what, self._expression_names())
        names = dict.fromkeys([*self.source.field_names, name])
        return self._derived(lambda rows: ({**fields, name: value(fields)} for fields in rows), names)

    def head(self, n: int = 5) -> Self:
        """The first items; the list is read no further."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"There are no first {n!r} {self.what}s.", fix=f"Say how many {self.what}s: head(5).")
        return self._derived(lambda rows: islice(rows, n))

    def tail(self, n: int = 5) -> Self:
        """The last items."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"There are no last {n!r} {self.what}s.", fix=f"Say how many {self.what}s: tail(5).")
        return self[max(0, len(self) - n) :]

    def sample(self, n: int, seed: row_order.Seed = None) -> Self:
        """`n` of its items, drawn at random; the same for the same seed."""
        return self._picked(row_order.sampled(len(self), n, seed, self.what))

    def shuffle(self, seed: row_order.Seed = None) -> Self:
        """All items in random order; the same for the same seed."""
        return self._picked(row_order.shuffled(len(self), seed))

    def split(self, frac_left: float = 0.5, seed: row_order.Seed = None) -> tuple[Self, Self]:
        """Two lists, the first with this part of the items, drawn at random."""
        count = int(len(self) * row_order.check_fraction(frac_left))
        positions = row_order.shuffled(len(self), seed)
        return self._picked(positions[:count]), self._picked(positions[count:])

    def order_by(self, *fields: str, reverse: bool = False) -> Self:
        """The items sorted by these fields: None before numbers before texts."""
        names = given_names(fields)
        self._check_known(names, ())
        key = row_order.sort_key(names)
        return self._derived(lambda rows: row_order.sorted_rows(rows, key, reverse=reverse), self.source.field_names)

    def sort_by(self, *fields: str, reverse: bool = False) -> Self:
        """`order_by`, under the name that results have for it."""
        return self.order_by(*fields, reverse=reverse)

    def expand(self, *expand_fields: str, number_field: bool = False) -> Self:
        """One item for each value of the lists in these fields, taken side by side; `number_field` counts them."""
        names = given_names(expand_fields)
        self._check_known(names, ())
        return self._derived(lambda rows: row_shape.expanded(rows, names, number_field=number_field))

    def chunk(
        self,
        field: str,
        num_words: int | None = None,
        num_lines: int | None = None,
        include_original: bool = False,
        hash_original: bool = False,
    ) -> Self:
        """One item for each part of a text: so many words, or lines. `<field>_chunk` numbers the parts,
        `<field>_char_count` and `<field>_word_count` measure them; `<field>_original` has the whole, or its MD5.
        """
        self._check_known([field], ())
        size = row_shape.ChunkSize.checked(num_words, num_lines)
        original = row_shape.Original.of(is_kept=include_original, as_hash=hash_original)
        return self._derived(lambda rows: row_shape.chunked(rows, field, size, original))

    def inner_join(self, other: Self, by: str | Sequence[str]) -> Self:
        """The pairs of items of both lists that have the same values in these fields, as in SQL."""
        return self._joining(other, by, JoinKind.INNER)

    def left_join(self, other: Self, by: str | Sequence[str]) -> Self:
        """`inner_join`, and this list's items without a partner, with None in the other's fields."""
        return self._joining(other, by, JoinKind.LEFT)

    def right_join(self, other: Self, by: str | Sequence[str]) -> Self:
        """`inner_join`, and the other list's items without a partner, with None in this list's fields."""
        return self._joining(other, by, JoinKind.RIGHT)

    def filter_na(self, fields: str | Sequence[str] = "*") -> Self:
        """The items that miss no value, in any field or in these: None, NaN, "nan", "none" and "null" are missing."""
        names = None if fields == "*" else given_names((fields,))
        return self._derived(lambda rows: row_shape.without_gaps(rows, names), self.source.field_names)

    def numberify(self) -> Self:
        """Each item with texts that are numbers as numbers."""
        return self._derived(row_shape.with_numbers, self.source.field_names)

    def unique(self) -> Self:
        """Each item once, where it first stands."""
        return self._derived(row_groups.unique_rows, self.source.field_names)

    def tally(self, *fields: str, top_n: int | None = None, output: str = "Dataset") -> Any:
        """How often each value of a field occurs, or each combination of several fields' values; all fields where none
        is named. A `ScenarioList`, the most frequent first; `output="dict"` gives counts by value.
        """
        from headrace.plan.rows.scenario_list import ScenarioList

        if output not in ("Dataset", "dict"):
            raise ListError(f"tally has no output {output!r}.", fix='Use "Dataset" or "dict".')
        names = given_names(fields or tuple(self.field_names))
        check_known(names, self._expression_names(), f"No {self.what} of the list has a")
        count = "tally_count" if "count" in names else "count"
        made = ScenarioList(islice(row_groups.tallied(self._rows(), names, count), top_n))
        return made if output == "Dataset" else {_key(row, names): row[count] for row in made.copies()}

    def duplicate(self) -> Self:
        """A list of its own with the same items."""
        return self.snapshot()

    def to_dicts(self) -> list[dict[str, Any]]:
        """The fields of every item, in RAM; None where an item lacks one."""
        names = self.field_names
        return [{name: fields.get(name) for name in names} for fields in self._rows()]

    def to_list(self, *, flatten: bool = False, remove_none: bool = False) -> list[Any]:
        """The values of the one field there is, or tuples of all fields, in RAM: `agents.select("age").to_list()`."""
        names = self.field_names
        if flatten and len(names) > 1:
            raise ListError(
                f"The list has {len(names)} fields.", fix='Name one: select("field").to_list(flatten=True).'
            )
        values = [tuple(fields.get(name) for name in names) for fields in self._rows()]
        listed: list[Any] = [value for (value,) in values] if len(names) == 1 else values
        listed = [value for value in listed if not (remove_none and value is None)]
        if not flatten:
            return listed
        return [each for value in listed for each in (cast("list[Any]", value) if isinstance(value, list) else [value])]

    def print(
        self,
        format: str | None = None,
        pretty_labels: Mapping[str, str] | None = None,
        max_rows: int | None = None,
    ) -> None:
        """Print the first items as a table that fits the terminal; parameters as those of `Results.print`."""
        self._table().print(format, pretty_labels, max_rows)

    def table(
        self,
        *fields: str,
        tablefmt: str | None = "rich",
        pretty_labels: Mapping[str, str] | None = None,
        max_rows: int | None = None,
    ) -> RowTable:
        """The list as a table that shows itself: these fields, or all, under other headings."""
        if tablefmt not in (None, "rich"):
            raise ListError(f"table() has no format {tablefmt!r}.", fix=f"Write print(format={tablefmt!r}).")
        return self._table().chosen(fields, pretty_labels or {}, max_rows)

    def to(self, survey: Any) -> Any:
        """A job that asks these of a survey, a question or a job: `agents.to(survey)` is `survey.by(agents)`."""
        return survey.by(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(len(self), self.what)})"

    def __str__(self) -> str:
        """The table that `print(list)` shows: as wide as the terminal, with a bounded number of rows."""
        return str(self._table())

    def _table(self) -> RowTable:
        from headrace.plan.rows.row_table import RowTable

        held = self.source.census.kinds
        names = [name for name in (NAME, *self.field_names, INSTRUCTION) if name in held]
        made = RowTable({name: held[name] for name in names}, self._rows, len(self), self.what)
        if isinstance(self.source, FileSource):
            made.file = self.source.path
        return made

    def _repr_html_(self) -> str:
        try:
            rows = list(islice(self._rows(), SHOWN_ROWS))
        except HeadraceError as error:  # a file that was moved away: a notebook would show our traceback
            return html_note(f"{self!r}: {error}")
        columns = [*dict.fromkeys(name for row in rows for name in row if name in self.source.census.kinds)]
        caption = first_of(len(rows), len(self), self.what)
        return html_table(columns, ([row.get(name) for name in columns] for row in rows), caption)

    def _rows(self, first: int = 0) -> Iterator[Fields]:
        return fields_of(self.source, first)

    def copies(self, first: int = 0) -> Iterator[Item]:
        """The items from this position on; what is changed in one is changed in no list."""
        return map(self._item, self._rows(first))

    def _item(self, fields: Fields) -> Item:
        return self.item.from_fields(fields)

    def _state(self, item: Item) -> Any:
        """What tells whether an item was changed."""
        return encode_fields(item.to_fields())[0]

    def _with_changed(self, changed: Self | None, position: int, item: Item, before: Any) -> Self | None:
        if changed is None and self._state(item) != before:
            changed = self._made(islice(self.copies(), position))
        if changed is not None:
            changed.append(item)
        return changed

    def _become(self, other: Any) -> None:
        self.source = other.source

    def _made(self, items: Iterable[Item]) -> Self:
        return type(self)(items)

    def _from_rows(self, rows: Iterable[Fields]) -> Self:
        """A list of rows that can be had only once."""
        return self._made(map(self._item, rows))

    def _derived(
        self, verb: Callable[[Iterator[Fields]], Iterable[Fields]], field_names: Collection[str] | None = None
    ) -> Self:
        """The list that a verb makes of this one, when it is asked for. `field_names` where they are known without a
        pass. The verb yields the same rows each time: what calls a function of the user's is not derived.
        """
        source = shallow(self.source)
        return self._deriving(lambda: verb(fields_of(source)), field_names)

    def _deriving(self, make: Callable[[], Iterable[Fields]], field_names: Collection[str] | None) -> Self:
        return self.of(DerivedRows(make, self.what, field_names, depth_of(self.source) + 1))

    def _each(self, change: Change, field_names: Collection[str] | None = None) -> Self:
        """The list of these items, each changed in the same way each time. A scenario is changed as the dict it is."""
        return self._derived(lambda rows: map(cast("Callable[[Fields], Fields]", change), rows), field_names)

    def _picked(self, positions: Sequence[int]) -> Self:
        source = self.source

        def picked() -> Iterator[Fields]:
            spool = spooled(source)
            return (decode_fields(spool.row(position)) for position in positions)

        return self._deriving(picked, source.field_names)

    def _joining(self, other: Self, by: str | Sequence[str], kind: JoinKind) -> Self:
        if not isinstance(other, type(self)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"A list of {self.what}s is joined with a {type(other).__name__}.", fix="Give such a list.")
        names = given_names((by,) if isinstance(by, str) else tuple(by))
        for listed in (self, other):
            check_known(names, listed._expression_names(), f"No {self.what} of the list has a")
        left, right = shallow(self.source), shallow(other.source)
        both = [[name for name in each.field_names if name != SETTINGS] for each in (left, right)]

        def joined() -> Iterator[Fields]:
            theirs = ({name: row[name] for name in row if name != SETTINGS} for row in fields_of(right))
            return joined_rows(fields_of(left), theirs, names, kind, (both[0], both[1]))

        return self._deriving(joined, [*dict.fromkeys([*both[0], *both[1]])])

    def _given(self, other: Any) -> Iterable[Item]:
        """The items of another list of this kind, or one item."""
        if isinstance(other, type(self)):
            return other.copies()
        if isinstance(other, (self.item, dict)):
            return [cast(Item, other)]
        raise ListError(
            f"A list of {self.what}s and a {type(other).__name__} do not go together.",
            fix=f"Give a list of {self.what}s, or one {self.what}.",
        )

    def _expression_names(self) -> list[str]:
        return list(self.source.field_names)

    def _check_known(self, names: Iterable[str], parts: Iterable[str]) -> None:
        check_known(names, [*self.field_names, *parts], f"No {self.what} of the list has a")

    def _rows_of(self, items: Iterable[Item], first: int = 0) -> Iterator[Fields]:
        for position, item in enumerate(items, first):
            if not isinstance(item, self.item):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ListError(
                    f"{self.what} {position} of the list is a {type(item).__name__}.",
                    fix=f"Give {self.item.__name__} objects{self.also}.",
                )
            yield self._row(item)

    def _row(self, item: Item) -> Fields:
        return item.to_fields()


def _key(row: Scenario, names: Sequence[str]) -> Any:
    """The values as a key of a dict; lists and dicts, which cannot be keys, as texts."""
    held = tuple(str(row[name]) if isinstance(row[name], (list, dict)) else row[name] for name in names)
    return held[0] if len(held) == 1 else held


def _renamed(item: Agent | Fields, renames: Mapping[str, str]) -> Agent | Fields:
    fields = item.traits if isinstance(item, Agent) else item
    present = {old: new for old, new in renames.items() if old in fields}
    if not present:
        return item
    if isinstance(item, Agent):
        return item.rename(present)
    made = renamed(item, present)
    if len(made) < len(item):
        check_distinct(item, present, "The scenario")
    return made


def _kept(item: Agent | Fields, names: Sequence[str]) -> Agent | Fields:
    if not isinstance(item, Agent):
        return kept(item, names)
    present = [name for name in names if item.has(name)]  # the rows of a list may differ
    return item.keep(present) if present else Agent()


def _dropped(item: Agent | Fields, names: Sequence[str]) -> Agent | Fields:
    if not isinstance(item, Agent):
        return {name: value for name, value in item.items() if name not in names}
    present = [name for name in names if item.has(name)]
    return item.drop(present) if present else item
