"""Totals as a user writes them: `aggregate={"mean": "mean(answer.rating)"}, group_by="agent.city"`.

Covers: reading and checking the texts, their JSON form in a run file, and a user's own aggregator by name. Does not
cover: adding (running_totals, aggregator).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple, cast

import msgspec

from headrace.errors import HeadraceError, InvalidInput, OptionError, Spelled
from headrace.results.aggregates.aggregation import Aggregation, read_aggregation
from headrace.results.aggregates.function_states import STATE_FUNCTIONS
from headrace.results.columns.binding import bind
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import ResultColumn
from headrace.store.run_file.rows import BatchRow

_OWN, _FUNCTIONS, _GROUP_BY = "aggregator", "aggregate", "group_by"
_MOST_COLUMNS = 1_000


class TotalledRow(NamedTuple):
    """A row on its way into the totals, with its agent and scenario as the file has them."""

    row: BatchRow
    agent: bytes
    scenario: bytes


class WrittenTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Functions by name, in their order, and the columns by which results are grouped."""

    functions: Mapping[str, str]
    group_by: tuple[str, ...] = ()

    def text(self) -> str:
        """The form in which a run file keeps them; two of one meaning may differ in it by a space."""
        return json.dumps({_FUNCTIONS: dict(self.functions), _GROUP_BY: list(self.group_by)}, ensure_ascii=False)

    def columns(self) -> list[Aggregation]:
        return [_column(name, text) for name, text in self.functions.items()]

    def grouped(self, catalog: Catalog) -> list[ResultColumn]:
        return [catalog.find(name) for name in self.group_by]

    def check(self, catalog: Catalog) -> None:
        """Refuse names that the job does not have, before anything runs."""
        self.grouped(catalog)
        for column in self.columns():
            if column.expression is not None:
                bind(column.expression, catalog)


def totals_from_text(text: str) -> WrittenTotals | str:
    """What a run file keeps: the texts of its functions, or the name of a user's class."""
    held = json.loads(text)
    if _OWN in held:
        return str(held[_OWN])
    functions, group_by = held[_FUNCTIONS], held[_GROUP_BY]
    texts = [*functions, *functions.values(), *group_by]
    if not all(isinstance(each, str) for each in texts) or len(texts) > 2 * _MOST_COLUMNS:
        raise ValueError("totals that could never have been written")
    return WrittenTotals(functions=functions, group_by=tuple(group_by))


def written_totals(aggregate: object, group_by: tuple[str, ...]) -> WrittenTotals | None:
    """The totals that a user wrote as texts; None for an aggregator of the user's own."""
    if isinstance(aggregate, Mapping):
        given = dict(cast("Mapping[object, object]", aggregate))
        if not given or not all(isinstance(text, str) for pair in given.items() for text in pair):
            raise OptionError(
                f"aggregate={aggregate!r} must have a text for each name.",
                fix='Write aggregate={"mean": "mean(answer.rating)", "n": "count()"}.',
            )
        written = WrittenTotals(functions=cast("dict[str, str]", given), group_by=group_by)
        _check_names(written)
        return written
    if all(callable(getattr(aggregate, name, None)) for name in ("add", "encode", "decode")) and not isinstance(
        aggregate, type
    ):
        return None
    raise OptionError(
        f"aggregate={aggregate!r} adds nothing up.",
        fix='Write aggregate={"mean": "mean(answer.rating)"}, or give an object with add(result), encode() and'
        " decode(state).",
    )


def own_totals_text(aggregator: object) -> str:
    """The form in which a run file keeps a user's own aggregator: its class by name."""
    return json.dumps({_OWN: class_name(aggregator)})


def class_name(aggregator: object) -> str:
    """Without its module: a class of a program is in `__main__` there, and elsewhere for whoever imports it."""
    return type(aggregator).__qualname__


def _check_names(written: WrittenTotals) -> None:
    written.columns()  # each must be one
    names = [*written.group_by, *written.functions]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or len(names) > _MOST_COLUMNS:
        what = f"has {twice!r} twice" if twice is not None else f"has more than {_MOST_COLUMNS:,} columns"
        raise OptionError(f"The table of totals {what}.", fix="Give each column a name of its own.")


def _column(name: str, text: str) -> Aggregation:
    try:
        column = read_aggregation(text, name)
    except InvalidInput as error:
        raise OptionError(f"aggregate {name!r}: {error.message}", fix=error.fix) from None
    if column.function not in STATE_FUNCTIONS:
        raise OptionError(
            f"aggregate {name!r}: {column.function}() needs every value at once, and totals hold none.",
            fix='Keep the answers (keep="answers") and ask the results for it, or use one of'
            f" {', '.join(STATE_FUNCTIONS)}.",
        )
    return column


def no_own_totals(path: object, name: str) -> HeadraceError:
    """The error where a file's own aggregator is needed and was not given."""
    return InvalidInput(
        f"{path} adds its results up with {name}, which no file can hold.",
        fix=Spelled(
            f"Give one: aggregate={name}() to run, results.aggregate({name}()) to read.",
            command=f"Run and read it from Python: results.aggregate({name}()).",
        ),
    )
