"""Results of a run file, lazily: nothing is loaded until it is looked at, and then a page at a time.

Covers: the methods that users call. Does not cover: what they do. That is in `reading` (views of one file, of several,
their windows and columns), column_verbs, `tables` (SQL, tallies, groups), tabular (exports) and `plots`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice, takewhile
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
from headrace.results.export.export_progress import watched
from headrace.results.export.export_targets import checked_target
from headrace.results.failed_questions import FailedQuestions, print_failures
from headrace.results.overview import described, glance_of
from headrace.results.printing import Glance
from headrace.results.reading import chosen_columns, joining, ordinal_ranges, view_windows
from headrace.results.reading.file_view import FileView, SharedFile
from headrace.results.reading.views import SortKey, View
from headrace.results.result import Result
from headrace.results.stats import Stats, added_stats, history_of, read_stats
from headrace.results.tables.computed_columns import ComputedColumns, InterviewColumns, Wanted
from headrace.results.tables.reshaping import LongRows, WideRows
from headrace.results.tables.row_joins import Joinable, JoinedRows, On, TabularRows
from headrace.results.tables.sql_table import OneFile, SeveralFiles, SqlRows
from headrace.results.tables.table import GroupBy, Table
from headrace.results.tables.tallying import Distinct, Tallied, counts_by_value
from headrace.results.tabular import Columns, Tabular, Values, row_number
from headrace.results.totals.aggregator import Aggregator
from headrace.results.totals.totals_table import glance_without_rows, totals_of, totals_of_a_part
from headrace.results.verb_arguments import check_sample, drawn_seed, flat_names, new_names
from headrace.stand_ins import HostedVerbs
from headrace.store.queries.query_clock import QueryClock
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from headrace.survey.survey import Survey

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from headrace.results.plots.plot import Plot

SomeAggregator = TypeVar("SomeAggregator", bound=Aggregator)
_WRITTEN_AT_ONCE = 50


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
        return cls((FileView(file=SharedFile.checked(path)).within(timeout_s),))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The same as `open`."""
        return cls.open(path)

    @classmethod
    def from_edsl(cls, given: Any, path: str | Path | None = None) -> Self:
        """Make a run file at `path` of results that EDSL saved, and open it: a `.json.gz`, `.json` or `.ep` file, JSON
        text, `to_dict()` or an object of EDSL's. Without a path it stands beside the file: `study.run`.

        Nothing in it is executed. What is not carried over is a warning, NotCarriedOver.
        """
        from headrace.edsl_files.results_import import import_results, path_beside

        target = path_beside(given) if path is None else Path(path).expanduser()
        import_results(given, target).notes.warn()
        return cls.open(target)

    @classmethod
    def example(cls) -> Results:
        """The results of a small survey that the test model has answered, to try things with."""
        answers = {"q0": "yes", "q1": "At my sister's.", "q2": "Rice with lentils."}
        return Survey.example().by(Model("test", canned_response=answers)).run(progress_bar=False)

    # --- columns

    def select(self, *columns: str | list[str]) -> Results:
        """A view with these columns: `"agent.age"`, `"answer.*"`, or a bare name that is the only one of its kind."""
        return self._each(lambda part: part.selecting(flat_names(columns)))

    def drop(self, *columns: str) -> Results:
        """A view without these columns."""
        return self._each(lambda part: column_verbs.dropped(part, columns))

    def mutate(
        self,
        new_var_string: str,
        *more: str | Mapping[str, Any],  # EDSL's dict of functions would stand here
        functions_dict: Mapping[str, Any] | None = None,
    ) -> Results:
        """A view with columns that are computed from others: `mutate("double = scale * 2")` gives `answer.double`.

        What is behind the `=` is written in the language of filters; it is computed when rows are read. Of several,
        each may use those before it.
        """
        texts = [new_var_string, *(each for each in more if isinstance(each, str))]
        if functions_dict or any(each for each in more if not isinstance(each, str)):
            raise InvalidInput(
                "mutate calls no functions of yours.",
                fix="Iterate over the results, or compute the column in pandas: to_pandas().",
            )
        return self._each(lambda part: functools.reduce(column_verbs.mutated, texts, part))

    def rename(self, old_name: str | Mapping[str, str], new_name: str | None = None) -> Results:
        """A view with other names: `rename("q", "mood")`, or several, `rename({"agent.age": "years"})`."""
        names = new_names(old_name, new_name)
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
        by_chance = SortKey(ResultColumn(Group.SHUFFLED, drawn_seed(seed)), False)
        return self._each(lambda part: part.sorted_by([by_chance]))

    def sample(
        self,
        n: int | None = None,
        frac: float | None = None,
        with_replacement: bool = False,
        seed: str | int | None = None,
    ) -> Results:
        """A view of `n` interviews, or of a part `frac` of them, drawn at random, each at most once. Where there are
        fewer than `n`, all of them.
        """
        check_sample(n, frac)
        if with_replacement:
            raise InvalidInput("A view has each interview once.", fix="Use random.choices(range(len(results)), k=n).")
        return self.shuffle(seed).head(int(len(self) * frac) if frac is not None else n or 0)

    def head(self, n: int = 5) -> Results:
        """A view of the first few; of all but the last few where `n` is negative, as in pandas."""
        return self[:n]

    def tail(self, n: int = 5) -> Results:
        """A view of the last few; of all but the first few where `n` is negative, as in pandas."""
        return self[-n:] if n < 0 else Results(view_windows.last(self._parts, n))

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
        return view_windows.count_of(self._parts)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> Results: ...

    def __getitem__(self, index: int | slice) -> Result | Results:
        if isinstance(index, slice):
            return Results(view_windows.sliced(self._parts, index))
        index = row_number(index, "results")
        found = next(iter(Results(view_windows.one_at(self._parts, index))), None)
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
        return joining.merged(self._parts, [part.results() for part in self._parts])

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
        return chosen_columns.names_of(self._parts)

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
        self._parts_with_rows()
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

    def failed(self) -> FailedQuestions:
        """The questions without an answer among these interviews, and why; read as they are consumed. `print` shows the
        first, `to_dicts()` and `to_pandas()` give all of them.
        """
        return FailedQuestions(lambda: (failure for part in self._parts for failure in part.failed()))

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
        `aggregator` given here, at the state of the file. They are those of the whole file, also after a run of a part
        of it; of a view with filters or a window there are none.
        """
        part = self._only_file("A table of totals")
        if part.view.is_narrowed:
            raise totals_of_a_part(part.file.reader)
        return totals_of(part.file.reader, part.file.header, aggregator)

    def plot(self, column: str, by: str | None = None, *, timeout_s: float | None = None) -> Plot:
        """A picture of a column: bars of its values, or a histogram of its numbers or of its texts' lengths. `by`
        splits it by the values of another column. `plot("memory")` is the same as `plot_memory()`.
        """
        if column == "memory" and by is None and not self._parts[0].catalog().has(column):
            return self.plot_memory()
        from headrace.results.plots.distributions import chart_of
        from headrace.results.plots.plot import Plot

        timed = self._each(lambda part: part.within(timeout_s))
        return Plot(chart_of(timed._parts, column, by, timed.tally), self.path)

    def plot_memory(self) -> Plot:
        """A picture of the memory of all runs of the file, against the budget."""
        from headrace.results.plots.distributions import memory_chart
        from headrace.results.plots.plot import Plot

        return Plot(memory_chart(self.memory_history(), self.path.name, self.stats().interviews), self.path)

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
        """A table with a row for each interview and question: its ordinal, these columns, `question` and `answer`.

        Columns may be patterns, as in `select`.
        """
        named = [name for each in columns for name in (self.select(each).columns if "*" in each else [each])]
        repeated = list(dict.fromkeys(["interview.ordinal", *named]))
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
        """A table of these columns with those of another run, a table, a list of dicts or a data frame.

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
        if len(self._parts_with_rows()) == 1:
            return Table(SqlRows(OneFile(opened, catalog), query), opened.timeout_s)
        several = SeveralFiles(opened, catalog, lambda names, clock: self.select(names)._timed_values(clock))
        return Table(SqlRows(several, query), opened.timeout_s)

    def duckdb(self, directory: str | Path | None = None) -> DuckDBPyConnection:
        """A DuckDB connection with the views `results`, the whole file, and `self`, these interviews: answers and
        fields by their bare names where only one column has the name, else in quotes, `"agent.age"`.

        They are read from Parquet files in `directory`, by default beside the run file (`city.run.parts`), to which
        only what is new is added. SQL has no order of its own: write ORDER BY ordinal for that of the plan.
        """
        return ordinal_ranges.duckdb_connection(self._only_file("DuckDB"), directory)

    def to_edsl(self, path: str | Path) -> Path:
        """Write these interviews as a `.json.gz` or `.json` file, which EDSL 1.0.9 reads with `Results.load(path)`.

        They are written one at a time. What EDSL has no place for is a warning, NotCarriedOver.
        """
        from headrace.edsl_files.results_writing import write_results

        files = {part.file.header.path: part.file for part in self._parts_with_rows()}
        if len({file.header.survey_row for file in files.values()}) > 1:
            raise InvalidInput("EDSL's results are of one survey, and these are of several.", fix="Write each alone.")
        return write_results(self._watched_interviews(), self.survey, files, self._target(path))

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
            paths = {each.file.reader.path for each in self._parts}
            several = "several" if len(paths) > 1 else "several parts of one, put together with +"
            raise InvalidInput(f"{what} reads one run file, and these are {several}.", fix="Ask each on its own.")
        return part

    def _parts_with_rows(self) -> tuple[FileView, ...]:
        """The parts; an error before anything is printed or written where the file of one keeps no rows."""
        for part in self._parts:
            part.opened()
        return self._parts

    def _values(self) -> Iterator[Values]:
        return chosen_columns.rows_of(self._parts)

    def _timed_values(self, clock: QueryClock) -> Iterator[Values]:
        return chosen_columns.rows_of(self._parts, clock)

    def _batches(self) -> Iterator[Columns]:
        is_mixed = joining.are_mixed(self._parts)
        return super()._batches() if is_mixed else chosen_columns.batches_of(self._parts_with_rows())

    def _batches_at(self, places: list[int]) -> Iterator[Columns]:
        is_mixed = joining.are_mixed(self._parts)
        return super()._batches_at(places) if is_mixed else chosen_columns.batches_of(self._parts, places)

    def _kinds(self) -> list[frozenset[ColumnKind]]:
        return chosen_columns.kinds_of(self._parts)

    def _kept_kinds(self) -> list[frozenset[ColumnKind] | None]:
        return chosen_columns.kept_kinds_of(self._parts)

    def _watched_interviews(self) -> Iterator[Result]:
        """The interviews, a few at a time, with a progress line as other exports have it."""
        left = iter(self)
        some = (list(islice(left, _WRITTEN_AT_ONCE)) for _ in count())
        for batch in watched(([each] for each in takewhile(bool, some)), self._row_count):
            yield from batch[0]

    def _computing(self, wanted: Wanted) -> ComputedColumns:
        return InterviewColumns(self._parts_with_rows(), wanted)

    def _limit_s(self, timeout_s: float | None) -> float:
        return self._parts[0].within(timeout_s).timeout_s

    def _row_count(self) -> int | None:
        return len(self) if all(part.opened().is_counted_in_sql() for part in self._parts) else None

    def _glance(self, most_rows: int) -> Glance:
        first = self._parts[0]
        if self._is_whole_file_without_rows():
            line = f"Results({described(first)})"
            return glance_without_rows(first.file.reader, first.file.header, line, most_rows)
        return glance_of(self._parts_with_rows(), most_rows)

    def _is_whole_file_without_rows(self) -> bool:
        part, *others = self._parts
        keep = part.file.header.keeping.keep
        return keep is Keep.NOTHING and not others and part.selected is None and not part.view.is_narrowed

    def _target(self, path: str | Path) -> Path:
        return checked_target(Path(path).expanduser(), *(part.file.reader.path for part in self._parts))

    def _keys(self, group: Group) -> list[str]:
        catalogs = [part.catalog() for part in self._parts]
        found = {c.bare_name for catalog in catalogs for c in catalog.data if c.prefix == group.value}
        return sorted(found)


def results_of_run(path: Path, scope: RunScope) -> Results:
    """What a run returns: the interviews that it was asked for, read from its file."""
    return Results((FileView(file=SharedFile.checked(path), view=View(scope=scope)),))
