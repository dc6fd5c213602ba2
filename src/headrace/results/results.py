"""Results of a run file, lazily: nothing is loaded until it is looked at, and then a page at a time.

Covers: the methods that users call. Does not cover: what verbs do to one file (file_view, column_verbs), several files
as one (joining), reading pages (stages), formats (tabular), SQL (table).
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from headrace.errors import HeadraceError, InvalidInput
from headrace.expressions import ColumnKind
from headrace.limits import Keep
from headrace.memory.bounded_history import HistoryPoint
from headrace.plan.called_models import with_claimed_models
from headrace.plan.lists import AgentList, ScenarioList
from headrace.plan.model_lists import ModelList
from headrace.plan.portion import RunScope
from headrace.results import column_verbs
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.export import duckdb_views, parquet_parts
from headrace.results.export.replacing import refuse_run_file
from headrace.results.failed_questions import FailedQuestion, failure_note, print_failures
from headrace.results.overview import described, glance_at, overview_columns
from headrace.results.plots.distributions import chart_of, memory_chart
from headrace.results.plots.plot import Plot
from headrace.results.printing import Glance
from headrace.results.reading import joining, ordinal_ranges
from headrace.results.reading.file_view import FileView, SharedFile, count_interviews
from headrace.results.reading.views import SortKey, View
from headrace.results.result import Result
from headrace.results.stats import Stats, added_stats, history_of, read_stats
from headrace.results.tables.computed_columns import ComputedColumns, InterviewColumns, Wanted
from headrace.results.tables.reshaping import LongRows, WideRows
from headrace.results.tables.row_joins import Joinable, JoinedRows, On, TabularRows
from headrace.results.tables.sql_table import OneFile, SeveralFiles, SqlRows
from headrace.results.tables.table import GroupBy, Table
from headrace.results.tables.tallying import Distinct, Tallied, counts_by_value
from headrace.results.tabular import Columns, Tabular, Values
from headrace.results.totals.aggregator import Aggregator
from headrace.results.totals.totals_table import glance_without_rows, totals_of
from headrace.stand_ins import HostedVerbs
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.reader import check_is_set_up
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from headrace.survey.survey import Survey

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SomeAggregator = TypeVar("SomeAggregator", bound=Aggregator)


class Results(HostedVerbs, Tabular):
    """A view of interviews in a run file. `Results.open(path)` has all that the file holds at each moment, also while a
    run goes on; what `run` returns has the interviews that this run was asked for, and no others later.

    `select`, `filter`, `sort_by`, `head` and the other verbs give new views and load nothing. `select` chooses the
    columns of tables and exports; iterating gives whole interviews.
    """

    def __init__(self, parts: tuple[FileView, ...]) -> None:
        self._parts = parts

    @classmethod
    def open(cls, path: str | Path, *, timeout_s: float | None = None) -> Self:
        """Open the results in a run file: all of them, as they are whenever they are looked at.

        The file is checked now, and read when its results are looked at. `timeout_s` is how long their next rows may
        take, a minute unless told otherwise; a count, a sort or a tally gives its rows when it has read everything.
        """
        return cls((FileView(file=_checked_file(path)).within(timeout_s),))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The same as `open`."""
        return cls.open(path)

    @classmethod
    def example(cls) -> Results:
        """The results of a small survey that the test model has answered, to try things with."""
        answers = {"q0": "yes", "q1": "At my sister's.", "q2": "Rice with lentils."}
        return Survey.example().by(Model("test", canned_response=answers)).run(progress_bar=False)

    # --- columns

    def select(self, *columns: str | list[str]) -> Results:
        """A view with these columns: `"agent.age"`, `"answer.*"`, or a bare name that is the only one of its kind."""
        names = [name for each in columns for name in ([each] if isinstance(each, str) else each)]
        return self._each(lambda part: part.selecting(names or ("*",)))

    def drop(self, *columns: str) -> Results:
        """A view without these columns."""
        return self._each(lambda part: column_verbs.dropped(part, columns))

    def mutate(self, new_var_string: str, functions_dict: Mapping[str, Any] | None = None) -> Results:
        """A view with a column that is computed from others: `mutate("double = scale * 2")` gives `answer.double`.

        What is behind the `=` is written in the language of filters; it is computed when rows are read.
        """
        if functions_dict:
            raise InvalidInput(
                "mutate calls no functions of yours.",
                fix="Iterate over the results, or compute the column in pandas: to_pandas().",
            )
        return self._each(lambda part: column_verbs.mutated(part, new_var_string))

    def rename(self, old_name: str | Mapping[str, str], new_name: str | None = None) -> Results:
        """A view with other names: `rename("q", "mood")`, or several, `rename({"agent.age": "years"})`."""
        if isinstance(old_name, str) == (new_name is None):
            raise InvalidInput("rename takes two names, or a dict.", fix='Write rename("q", "mood").')
        names = {old_name: new_name or ""} if isinstance(old_name, str) else old_name
        return self._each(lambda part: column_verbs.renamed(part, names))

    # --- rows

    def filter(self, expression: str, *, timeout_s: float | None = None) -> Results:
        """A view of the interviews for which this holds: `"answer.rating > 5 and agent.age < 30"`.

        `timeout_s` is how long the next rows of it, and of what is made of it, may take: see `open`.
        """
        if not isinstance(expression, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"filter takes a condition as text, not {type(expression).__name__}.",
                fix='Write filter("rating > 5"), or iterate: [result for result in results if ...].',
            )
        return self._each(lambda part: part.filtering(expression).within(timeout_s))

    def sort_by(self, *columns: str, reverse: bool | Sequence[bool] = False, timeout_s: float | None = None) -> Results:
        """A view in the order of these columns: None first, numbers, texts, then lists; equal ones as they were.

        `reverse=True` turns the order round, `reverse=[False, True]` that of the second column alone.
        """
        return self._each(lambda part: part.ordering(columns, reverse).within(timeout_s))

    def order_by(
        self, *columns: str, reverse: bool | Sequence[bool] = False, timeout_s: float | None = None
    ) -> Results:
        """The same as `sort_by`."""
        return self.sort_by(*columns, reverse=reverse, timeout_s=timeout_s)

    def shuffle(self, seed: str | int | None = None) -> Results:
        """A view in an order that looks random: the same for the same seed, on every machine."""
        drawn = secrets.token_hex(8) if seed is None else str(seed)
        return self._each(lambda part: part.sorted_by([SortKey(ResultColumn(Group.SHUFFLED, drawn), False)]))

    def sample(
        self,
        n: int | None = None,
        frac: float | None = None,
        with_replacement: bool = False,
        seed: str | int | None = None,
    ) -> Results:
        """A view of `n` interviews, or of a part `frac` of them, drawn at random, each at most once."""
        if (n is None) == (frac is None):
            raise InvalidInput("sample takes n or frac.", fix="Write sample(100), or sample(frac=0.1).")
        if with_replacement:
            raise InvalidInput("A view has each interview once.", fix="Use random.choices(range(len(results)), k=n).")
        return self.shuffle(seed).head(int(len(self) * frac) if frac is not None else n or 0)

    def head(self, n: int = 5) -> Results:
        """A view of the first few."""
        return self[: max(0, n)]

    def tail(self, n: int = 5) -> Results:
        """A view of the last few."""
        part, *others = self._parts
        last = None if others else part.view.last(max(0, n))
        return self[max(0, len(self) - max(0, n)) :] if last is None else Results((replace(part, view=last),))

    def limit(self, n: int) -> Results:
        """The same as `head`."""
        return self.head(n)

    def __add__(self, other: Results) -> Results:
        """The interviews of both. A column that only one has is None in the other."""
        if not isinstance(other, Results):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return Results(joining.added(self._parts, other._parts))

    # --- a sequence

    def __len__(self) -> int:
        return sum(map(count_interviews, self._parts))

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> Results: ...

    def __getitem__(self, index: int | slice) -> Result | Results:
        if isinstance(index, slice):
            if index.step is None and index.stop is None and index.start is not None and index.start < 0:
                return self.tail(-index.start)
            return Results(joining.windowed(self._parts, *self._bounds(index)))
        index = operator.index(index)
        found = next(iter(self._one_at(index)), None)
        if found is None:
            raise IndexError(f"there is no result {index} among {len(self):,}")
        return found

    def at(self, ordinal: int) -> Result:
        """The interview with this number in the plan; IndexError where these results have none."""
        part, *others = self._parts
        if others:
            raise InvalidInput("Each run file numbers its own interviews, and these are several.", fix="Ask one file.")
        return part.at(operator.index(ordinal))

    def __iter__(self) -> Iterator[Result]:
        return self._merged([part.results() for part in self._parts])

    def first(self) -> Any:
        """The first interview; where columns were chosen, the first value of the first one."""
        if self._parts[0].selected is None:
            return self[0]
        return super().first()

    # --- what they are

    @property
    def path(self) -> Path:  # pyright: ignore[reportIncompatibleVariableOverride] # it is never set
        """Where the run file is; `fresh=True` renames the file of earlier results."""
        return self._parts[0].file.reader.path

    @property
    def columns(self) -> list[str]:
        catalog = self._parts[0].catalog()
        return [catalog.shown(column) for column in self._parts[0].columns(catalog)]

    def table(
        self,
        *fields: str,
        tablefmt: str | None = "rich",
        pretty_labels: Mapping[str, str] | None = None,
        max_rows: int | None = None,
    ) -> Results:
        """A view that shows itself as a table: these columns, or what `print` shows, under other headings."""
        if tablefmt not in (None, "rich"):
            raise InvalidInput(f"table() has no format {tablefmt!r}.", fix=f"Write print(format={tablefmt!r}).")
        chosen = self.select(*(fields or self._glance(0).columns))
        chosen = chosen.rename(pretty_labels) if pretty_labels else chosen
        return chosen if max_rows is None else chosen.head(max_rows)

    def relevant_columns(self) -> list[str]:
        """The same as `columns`."""
        return self.columns

    @property
    def question_names(self) -> list[str]:
        return list(self._parts[0].file.header.question_names)

    @property
    def survey(self) -> Survey:
        """The survey that was asked, read from the run file; a function in it is the program's to give."""
        survey = Survey.from_row(self._parts[0].file.header.survey_row)
        return with_claimed_models(survey, str(self.path), frozenset())

    @property
    def answer_keys(self) -> dict[str, str]:
        """The text of each question, as it was written, by its name."""
        header = self._parts[0].file.header
        return {name: header.question(place).question_text for place, name in enumerate(header.question_names)}

    @property
    def agent_keys(self) -> list[str]:
        return self._keys(Group.AGENT)

    @property
    def scenario_keys(self) -> list[str]:
        return self._keys(Group.SCENARIO)

    @property
    def model_keys(self) -> list[str]:
        return self._keys(Group.MODEL)

    @property
    def agents(self) -> AgentList:
        """The agent of each interview."""
        return AgentList(Agent.from_fields(result.agent) for result in self)

    @property
    def scenarios(self) -> ScenarioList:
        """The scenario of each interview."""
        return ScenarioList(Scenario.from_fields(result.scenario) for result in self)

    @property
    def models(self) -> ModelList:
        """The models that were asked."""
        return ModelList([model for part in self._parts for model in part.file.header.models])

    def failed(self) -> Iterator[FailedQuestion]:
        """The questions without an answer among these interviews, and why; read as they are consumed."""
        return (failure for part in self._parts for failure in part.failed())

    @property
    def has_unfixed_exceptions(self) -> bool:
        """Whether a question of these interviews has failed."""
        return next(self.failed(), None) is not None

    def show_exceptions(self) -> None:
        """Print the first questions that have failed, and why; `failed()` gives all of them."""
        print_failures(self.failed())

    def stats(self) -> Stats:
        """What the whole file took to make, whichever of its interviews this view shows."""
        return added_stats([read_stats(part.file.reader) for part in self._parts])

    def memory_history(self) -> list[HistoryPoint]:
        """The memory of all runs of the file over their seconds of running, in at most some hundred points."""
        return history_of(self._only_file("A memory history").file.reader)

    @property
    def kept(self) -> str:
        """What the file keeps of its interviews: "everything", "answers" or "nothing"."""
        return self._parts[0].file.header.keeping.keep.value

    @overload
    def aggregate(self) -> Table: ...

    @overload
    def aggregate(self, aggregator: SomeAggregator) -> SomeAggregator: ...

    def aggregate(self, aggregator: Aggregator | None = None) -> Table | Aggregator:
        """The totals that the run adds up (`job.run(path, aggregate=...)`), as they are at this moment: a table, or the
        `aggregator` given here, at the state of the file. They are those of the whole file, whatever this view shows.
        """
        file = self._only_file("A table of totals").file
        return totals_of(file.reader, file.header, aggregator)

    def plot(self, column: str, by: str | None = None, *, timeout_s: float | None = None) -> Plot:
        """A picture of a column: bars of its values, or a histogram of its numbers or of its texts' lengths. `by`
        splits it by the values of another column. `plot("memory")` is the same as `plot_memory()`.
        """
        if column == "memory" and by is None and not self._parts[0].catalog().has(column):
            return self.plot_memory()
        timed = self._each(lambda part: part.within(timeout_s))
        return Plot(chart_of(timed._parts, column, by, timed.tally), self.path)

    def plot_memory(self) -> Plot:
        """A picture of the memory of all runs of the file, against the budget."""
        return Plot(memory_chart(self.memory_history(), self.path.name), self.path)

    @overload
    def tally(
        self,
        *fields: str,
        top_n: int | None = None,
        timeout_s: float | None = None,
        output: Literal["Dataset"] = "Dataset",
    ) -> Table: ...

    @overload
    def tally(
        self, *fields: str, top_n: int | None = None, timeout_s: float | None = None, output: Literal["dict"]
    ) -> dict[Any, int]: ...

    def tally(
        self,
        *fields: str,
        top_n: int | None = None,
        timeout_s: float | None = None,
        output: str = "Dataset",
    ) -> Table | dict[Any, int]:
        """How often each value occurs, or each combination of several columns' values, the most frequent first.

        Without fields, those that were chosen. `output="dict"` gives counts by value.
        """
        if output not in ("Dataset", "dict"):
            raise InvalidInput(f"tally has no output {output!r}.", fix='Use "Dataset" or "dict".')
        names = list(fields) or self.columns
        found = Table(Tallied(self._computing(names), names, top_n), self._limit_s(timeout_s))
        return found if output == "Dataset" else counts_by_value(iter(found))

    def group_by(self, *columns: str, timeout_s: float | None = None) -> GroupBy:
        """Groups of interviews that are equal in these columns: `group_by("agent.city").agg(mean="mean(rating)")`.

        Without columns, all interviews are one group.
        """
        return GroupBy(self._computing, columns, self._limit_s(timeout_s))

    def distinct(self, *columns: str, timeout_s: float | None = None) -> Table:
        """A table of these columns with each combination of values once, in the order of the first ones."""
        names = list(columns) or self.columns
        return Table(Distinct(self._computing(names), names), self._limit_s(timeout_s))

    def long(self, *columns: str, timeout_s: float | None = None) -> Table:
        """A table with a row for each interview and question: its ordinal, these columns, `question` and `answer`."""
        repeated = list(dict.fromkeys(["interview.ordinal", *columns]))
        questions = self.question_names
        asked = [f"answer.{name}" for name in questions]
        rows = LongRows(self._computing([*repeated, *asked]), repeated, questions)
        return Table(rows, self._limit_s(timeout_s))

    def wide(self, index: str | Sequence[str], columns: str, values: str, *, timeout_s: float | None = None) -> Table:
        """A table with a row for each value of `index` and a column for each value of `columns`, filled from `values`.

        The values that become columns are read now, at most 1,000 of them; two interviews for one place are an error.
        """
        names = [index] if isinstance(index, str) else index
        limit_s = self._limit_s(timeout_s)
        return Table(WideRows(self._computing, names, columns, values, QueryClock(limit_s)), limit_s)

    def join(
        self,
        other: Joinable,
        on: On,
        how: str = "inner",
        suffix: str = "_right",
        *,
        timeout_s: float | None = None,
    ) -> Table:
        """A table of these columns with those of another run, a table, a list of dicts or a pandas frame.

        Each row comes with each row of `other` that has the same `on`: one name, several, or `{here: there}`;
        `how="left"` also keeps rows that match none. None and NaN match nothing. A column of `other` that is called as
        one here gets the suffix.
        """
        return Table(JoinedRows(TabularRows(self), other, on, how, suffix), self._limit_s(timeout_s))

    def sql(self, query: str, *, timeout_s: float | None = None) -> Table:
        """Ask SQLite about these interviews, under the name `self`: answers and fields by their bare names where only
        one column has the name, else in quotes, `"agent.age"`.

        `timeout_s` is how long the whole query may take; a minute unless told otherwise.
        """
        first = self._parts[0]
        opened, catalog = first.within(timeout_s).opened(), first.catalog()
        if len(self._parts) == 1:
            return Table(SqlRows(OneFile(opened, catalog), query), opened.timeout_s)
        several = SeveralFiles(opened, catalog, lambda names, clock: self.select(names)._timed_values(clock))
        return Table(SqlRows(several, query), opened.timeout_s)

    def duckdb(self, directory: str | Path | None = None) -> DuckDBPyConnection:
        """A DuckDB connection with the views `results`, the whole file, and `self`, these interviews: answers and
        fields by their bare names where only one column has the name, else in quotes, `"agent.age"`.

        They are read from Parquet files in `directory`, by default beside the run file (`city.run.parts`), to which
        only what is new is added. SQL has no order of its own: write ORDER BY ordinal for that of the plan.
        """
        part, *others = self._parts
        if others:
            raise InvalidInput("DuckDB reads one run file, and these are several.", fix="Ask each file on its own.")
        duckdb_views.import_duckdb()
        source = ordinal_ranges.ranged_source(part)
        place = ordinal_ranges.parts_directory(self.path) if directory is None else Path(directory).expanduser()
        parts = parquet_parts.up_to_date_parts(place.absolute(), source)
        is_everything = part.view.is_whole and part.view.scope is None
        ordinals = None if is_everything else self.select(parquet_parts.ORDINAL)._batches()
        return duckdb_views.connect(parts, ordinal_ranges.names_in_sql(source.columns), ordinals)

    def close(self) -> None:
        """Close the file. Using the results again opens it again."""
        for part in self._parts:
            part.file.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """One line; of chosen columns, the table."""
        try:
            if self._parts[0].selected is not None:
                return str(self)
            return f"Results({' + '.join(described(part) for part in self._parts)})"
        except HeadraceError as error:
            return f"Results({str(self.path)!r}: {error.message})"

    # --- reading

    def _each(self, verb: Callable[[FileView], FileView]) -> Results:
        return Results(tuple(verb(part) for part in self._parts))

    def _only_file(self, what: str) -> FileView:
        part, *others = self._parts
        if others:
            raise InvalidInput(f"{what} reads one run file, and these are several.", fix="Ask each file on its own.")
        return part

    def _merged(self, streams: list[Iterator[Any]], clock: QueryClock | None = None) -> Iterator[Any]:
        return streams[0] if len(streams) == 1 else joining.merged(self._parts, streams, clock)

    def _values(self) -> Iterator[Values]:
        return self._read_values(None)

    def _timed_values(self, clock: QueryClock) -> Iterator[Values]:
        return self._read_values(clock)

    def _read_values(self, clock: QueryClock | None) -> Iterator[Values]:
        names = self.columns
        return self._merged([part.values(self._columns_of(part, names), clock) for part in self._parts], clock)

    def _batches(self) -> Iterator[Columns]:
        if joining.are_mixed(self._parts):
            return super()._batches()
        names = self.columns
        return chain.from_iterable(part.opened().batches(self._columns_of(part, names)) for part in self._parts)

    def _computing(self, wanted: Wanted) -> ComputedColumns:
        return InterviewColumns(self._parts, wanted)

    def _limit_s(self, timeout_s: float | None) -> float:
        return self._parts[0].within(timeout_s).timeout_s

    def _batches_at(self, places: list[int]) -> Iterator[Columns]:
        if joining.are_mixed(self._parts):
            return super()._batches_at(places)
        names = self.columns
        columns = ((part, self._columns_of(part, names)) for part in self._parts)
        chosen = ((part, [held[place] for place in places]) for part, held in columns)
        return chain.from_iterable(part.opened().batches(held) for part, held in chosen)

    def _kept_kinds(self) -> list[frozenset[ColumnKind] | None]:
        names = self.columns
        kinds = [part.file.kept_kinds(self._columns_of(part, names)) for part in self._parts]
        return [_all_kinds(held) for held in zip(*kinds, strict=True)]

    def _columns_of(self, part: FileView, names: Iterable[str]) -> list[ResultColumn]:
        catalog = part.catalog()
        if part is self._parts[0]:
            return list(part.columns(catalog))
        return [catalog.find(name) for name in names]

    def _kinds(self) -> list[frozenset[ColumnKind]]:
        names = self.columns
        kinds = [part.kinds(self._columns_of(part, names)) for part in self._parts]
        return [frozenset[ColumnKind]().union(*held) for held in zip(*kinds, strict=True)]

    def _row_count(self) -> int | None:
        return len(self) if all(part.opened().is_counted_in_sql() for part in self._parts) else None

    def _glance(self, most_rows: int) -> Glance:
        first = self._parts[0]
        if first.file.header.keeping.keep is Keep.NOTHING:
            return glance_without_rows(first.file.reader, first.file.header, repr(self), most_rows)
        catalog = first.catalog()
        columns = first.selected
        if columns is None:
            columns = overview_columns(first.file.reader, first.file.header, catalog)
        names = [catalog.shown(column) for column in columns]
        if len(self._parts) > 1:
            rows, total = list(self.select(*names)[:most_rows]._values()), len(self)
            failed = sum(part.failed_count() for part in self._parts)
            notes = failure_note(failed, total, next(self.failed(), None) if failed else None)
            return Glance(columns=names, rows=rows, total=total, notes=notes, is_overview=first.selected is None)
        return glance_at(first, columns, names, most_rows)

    def _target(self, path: str | Path) -> Path:
        return refuse_run_file(Path(path).expanduser(), *(part.file.reader.path for part in self._parts))

    def _keys(self, group: Group) -> list[str]:
        catalogs = [part.catalog() for part in self._parts]
        found = {c.bare_name for catalog in catalogs for c in catalog.data if c.prefix == group.value}
        return sorted(found)

    def _one_at(self, index: int) -> Results:
        """A view of the result at an index, which may be negative; empty where there is none."""
        if index >= 0:
            return self[index : index + 1]
        part, *others = self._parts
        end = None if others or part.view.is_whole else part.view.from_end(-index - 1, -index)
        if end is not None:
            return Results((replace(part, view=end),))
        place = len(self) + index
        return self[place : place + 1] if place >= 0 else self[:0]

    def _bounds(self, index: slice) -> tuple[int, int | None]:
        if index.step not in (None, 1):
            raise InvalidInput(f"Results cannot be sliced in steps of {index.step}.", fix="Use list(results)[...].")
        start = 0 if index.start is None else operator.index(index.start)
        stop = None if index.stop is None else operator.index(index.stop)
        if start < 0 or (stop is not None and stop < 0):
            start, stop, _ = index.indices(len(self))
        return start, stop if stop is None else max(start, stop)


def results_of_run(path: Path, scope: RunScope) -> Results:
    """What a run returns: the interviews that it was asked for, read from its file."""
    return Results((FileView(file=_checked_file(path), view=View(scope=scope)),))


def _checked_file(path: str | Path) -> SharedFile:
    file = SharedFile(Path(path).expanduser().absolute())  # a later chdir changes nothing
    with file.reader.snapshot() as connection:
        check_is_set_up(connection, file.reader.path)
    file.reader.close()  # results that nobody looks at must not keep a later run from sealing the file
    return file


def _all_kinds(held: Sequence[frozenset[ColumnKind] | None]) -> frozenset[ColumnKind] | None:
    known = [kinds for kinds in held if kinds is not None]
    return frozenset[ColumnKind]().union(*known) if len(known) == len(held) else None
