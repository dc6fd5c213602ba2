"""One interview: its conversation, who was asked about what, its neighbours in the table, and those of the same agent
and scenario with other models or iterations, one of which may stand beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import msgspec

from headrace.errors import InvalidInput, QueryTimeout
from headrace.plan.product import Coordinates, Plan
from headrace.results.columns.result_column import STATUS
from headrace.results.reading.file_view import FileView
from headrace.results.reading.kept_orders import KeptOrder
from headrace.results.reading.keyset_search import KeysetPlace, find_interviews
from headrace.results.result import Result
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.stored_job.stored_plan import read_plan
from headrace.survey.values import Fields
from headrace.web.api.conversation import Conversation, conversation_of, model_label
from headrace.web.api.run_rows import RowsAsked
from headrace.web.cells import cut_value
from headrace.web.operations import READ_TIMEOUT_S, PageOperation
from headrace.web.page_cursors import cursor_of
from headrace.web.shown_files import NotShown, ShownFiles
from headrace.web.table_query import TableQuery

_MOST_OTHERS, _MOST_FIELDS, _LONGEST_FIELD = 60, 500, 2_000
_NEIGHBOUR_S = 0.03  # of work on either side: the interview itself is what was asked for
_WAITING_COUNTS = 0.1  # a machine that is busy, or a slow disk, makes the search longer, and its end no nearer


class InterviewAsked(msgspec.Struct, frozen=True):
    """`filter` and `sort` as for the rows: the neighbours are those of that table. `beside` is the ordinal of another
    interview of the same agent and scenario. Texts of prompts, responses and answers come with `text=true`.
    """

    run: str
    ordinal: int
    filter: str = ""
    sort: str = ""
    beside: int | None = None
    text: bool = False


class Neighbour(msgspec.Struct, frozen=True):
    """The interview before or behind this one. Where it was not found at once, `ordinal` is null, and `cursor` is that
    of the page of rows that goes on looking.
    """

    ordinal: int | None
    cursor: str | None = None


class TwinInterview(msgspec.Struct, frozen=True):
    """An interview of the same agent and scenario; `status` is null where it has no row yet."""

    ordinal: int
    model: str
    iteration: int
    status: str | None


class OneInterview(msgspec.Struct, frozen=True, kw_only=True):
    """`previous` and `next` are null at the ends of the table. `truncated` where fields or twins were left out, or a
    field was cut.
    """

    agent: dict[str, Any]
    scenario: dict[str, Any]
    interview: Conversation
    beside: Conversation | None
    twins: list[TwinInterview]
    previous: Neighbour | None
    next: Neighbour | None
    truncated: bool


class InterviewNotThere(NotShown):
    def __init__(self, why: str) -> None:
        InvalidInput.__init__(self, why[:1].upper() + why[1:] + ".", fix="The table has those that there are.")


def _one_interview(files: ShownFiles, asked: InterviewAsked) -> OneInterview:
    file = files.one(asked.run)
    with TableQuery().view(file) as view:
        result = _result(view, asked.ordinal)
        twins, more_twins = _twins(view, asked.ordinal)
        beside = None if asked.beside is None else _beside(view, asked.beside, twins)
        agent, agent_is_cut = _fields(result.agent)
        scenario, scenario_is_cut = _fields(result.scenario)
        shown = conversation_of(view, result, with_text=asked.text)
        other = None if beside is None else conversation_of(view, beside, with_text=asked.text)
    previous, following = _neighbours(files, asked)
    return OneInterview(
        agent=agent,
        scenario=scenario,
        interview=shown,
        beside=other,
        twins=twins,
        previous=previous,
        next=following,
        truncated=more_twins or agent_is_cut or scenario_is_cut,
    )


def _result(view: FileView, ordinal: int) -> Result:
    try:
        return view.at(ordinal)
    except IndexError as error:
        raise InterviewNotThere(str(error)) from None


def _beside(view: FileView, ordinal: int, twins: list[TwinInterview]) -> Result:
    if ordinal not in {twin.ordinal for twin in twins}:
        raise InvalidInput(
            f"Interview {ordinal:,} is not of the same agent and scenario.", fix="Choose one of those that are listed."
        )
    return _result(view, ordinal)


def _fields(fields: Fields) -> tuple[dict[str, Any], bool]:
    cut = {name: cut_value(value, _LONGEST_FIELD) for name, value in islice(fields.items(), _MOST_FIELDS)}
    is_cut = len(fields) > _MOST_FIELDS or any(each.truncated for each in cut.values())
    return {name[:_LONGEST_FIELD]: each.value for name, each in cut.items()}, is_cut


# --- the same agent and scenario


def _twins(view: FileView, ordinal: int) -> tuple[list[TwinInterview], bool]:
    header = view.file.header
    with view.file.reader.snapshot() as connection:
        plan = read_plan(connection, header.path)
    found = dict(islice(_places_beside(plan, ordinal), _MOST_OTHERS + 1))
    kept = list(found)[:_MOST_OTHERS]
    statuses = {each: status for each, (status,) in view.opened().at_each(kept, [STATUS], QueryClock(READ_TIMEOUT_S))}
    return [
        TwinInterview(each, model_label(header, found[each].model), found[each].iteration, statuses.get(each))
        for each in kept
    ], len(found) > _MOST_OTHERS


def _places_beside(plan: Plan, ordinal: int) -> Iterator[tuple[int, Coordinates]]:
    """The other interviews of an interview's agent and scenario, by ordinal."""
    own = plan.coordinates(ordinal)
    for iteration, model in product(range(plan.shape.iteration), range(plan.shape.model)):
        place = Coordinates(iteration, own.agent, own.scenario, model)
        if place != own:
            yield plan.ordinal(place), place


# --- the table


def _neighbours(files: ShownFiles, asked: InterviewAsked) -> tuple[Neighbour | None, Neighbour | None]:
    file = files.one(asked.run)
    kept = files.orders.of(file.path, (asked.filter, asked.sort))
    with TableQuery(asked.filter, asked.sort).view(file) as view:
        return _neighbour(view, asked, kept, is_back=True), _neighbour(view, asked, kept, is_back=False)


def _neighbour(view: FileView, asked: InterviewAsked, kept: KeptOrder, *, is_back: bool) -> Neighbour | None:
    place = KeysetPlace(asked.ordinal, is_back)
    rows = RowsAsked(asked.run, asked.filter, asked.sort).in_words
    is_next_row = not asked.filter.strip() and not asked.sort  # one look into an index: nothing to give up on
    clock = QueryClock(READ_TIMEOUT_S) if is_next_row else QueryClock(_NEIGHBOUR_S, _work_clock())
    try:
        found = find_interviews(view.opened(), place, 1, clock, counts_file=False, kept=kept)
    except QueryTimeout:
        return Neighbour(None, cursor_of(place, rows))
    if found.read_to is None or (found.ordinals and not asked.sort):
        return Neighbour(found.ordinals[0]) if found.ordinals else None
    further = found.before if is_back else found.behind
    return Neighbour(None, cursor_of(further or place, rows))


def _work_clock() -> Callable[[], float]:
    """The time that this thread works; time in which it waits counts for little."""
    worked, begun = time.thread_time(), time.monotonic()
    return lambda: max(time.thread_time() - worked, _WAITING_COUNTS * (time.monotonic() - begun))


ONE_INTERVIEW = PageOperation(
    name="interview",
    summary="One interview: its questions, prompts, responses and answers, and its neighbours.",
    path="/runs/{run}/interviews/{ordinal}",
    parameters=InterviewAsked,
    reply=OneInterview,
    call=_one_interview,
)
