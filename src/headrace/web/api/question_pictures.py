"""The questions of a run, and how their answers are distributed: bars for choices, intervals for numbers, lengths and
samples for texts, alone or split by a column.

Counted in ordinal ranges for a fraction of a second a request, and kept (results.plots.kept_counts): a reply says how
far it is, and the next one goes on from there. Does not cover: drawing (web.pages.question_pages).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from headrace.display import cell_text
from headrace.results.columns.result_column import Group
from headrace.results.plots.kept_charts import KeptChart, kept_chart
from headrace.results.plots.kept_counts import AskedPicture, CountedPicture
from headrace.store.run_file.header import RunHeader
from headrace.web.operations import PageOperation
from headrace.web.shown_files import ShownFiles
from headrace.web.table_query import TableQuery

COUNT_WITHIN_S = 0.6
_FIRST_BARS_WITHIN_S = 0.1  # for each of several that are asked for one after the other
_MOST_SPLITS, _LONGEST_TEXT = 200, 400
_SPLITS = frozenset({Group.AGENT, Group.SCENARIO, Group.MODEL, Group.ITERATION})


class QuestionsAsked(msgspec.Struct, frozen=True):
    """Questions by their position in the survey."""

    run: str
    first: Annotated[int, msgspec.Meta(ge=0)] = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50


class ShownQuestion(msgspec.Struct, frozen=True):
    name: str
    kind: str
    text: str


class QuestionsListed(msgspec.Struct, frozen=True):
    """`splits` are columns by which pictures can be split; `truncated` where there are more questions behind these."""

    questions: list[ShownQuestion]
    total: int
    splits: list[str]
    truncated: bool


class PictureAsked(msgspec.Struct, frozen=True):
    """`by` is the column to split by, `filter` an expression, as a filter of results is. `text` asks for texts that
    models wrote: samples, and values that are not among a question's options.
    """

    run: str
    question: str
    by: str = ""
    filter: str = ""
    text: bool = False


class PictureBar(msgspec.Struct, frozen=True):
    """`kind` is value, other, none or failed. `filter` chooses the interviews of this bar, empty where it cannot be
    said, or where it has a text that was not asked for; so is `label`.
    """

    label: str
    kind: str
    count: int
    filter: str


class PicturePanel(msgspec.Struct, frozen=True):
    """One group; `rows` interviews are in it."""

    label: str
    rows: int
    bars: list[PictureBar]


class QuestionPicture(msgspec.Struct, frozen=True):
    """The first `read` of the file's `total` interviews were looked at; all of them, as they are now, where `complete`.
    `counted` is what bars are: values, items, numbers or lengths.
    """

    question: str
    counted: str
    by: str
    read: int
    total: int
    complete: bool
    panels: list[PicturePanel]
    samples: list[str]


class CountedQuestion(NamedTuple):
    name: str
    counted: CountedPicture
    drawn: KeptChart


def _question_list(files: ShownFiles, asked: QuestionsAsked) -> QuestionsListed:
    with TableQuery().view(files.one(asked.run)) as view:
        header = view.file.header
        names = header.question_names
        positions = range(asked.first, min(len(names), asked.first + asked.count))
        splits = [column.full_name for column in view.catalog().data if column.group in _SPLITS]
        return QuestionsListed(
            questions=[shown_question(header, position) for position in positions],
            total=len(names),
            splits=splits[:_MOST_SPLITS],
            truncated=positions.stop < len(names),
        )


def shown_question(header: RunHeader, position: int) -> ShownQuestion:
    question = header.question(position)
    return ShownQuestion(
        name=header.question_names[position],
        kind=question.kind,
        text=cell_text(question.question_text, _LONGEST_TEXT),
    )


def counted_questions(files: ShownFiles, run: str, names: list[str], by: str, condition: str) -> list[CountedQuestion]:
    """Count these questions for as long as a request may, side by side."""
    path = files.one(run).path
    split = by.strip() or None
    asked = [AskedPicture(f"answer.{name}", split, condition.strip()) for name in names]
    found = files.counts.look(path, asked, COUNT_WITHIN_S, _FIRST_BARS_WITHIN_S * len(asked))
    return [
        CountedQuestion(name, counted, kept_chart(counted.kept, name, split, condition.strip()))
        for name, counted in zip(names, found, strict=True)
    ]


def _question_picture(files: ShownFiles, asked: PictureAsked) -> QuestionPicture:
    ((name, counted, drawn),) = counted_questions(files, asked.run, [asked.question], asked.by, asked.filter)
    chart, column = drawn.chart, counted.kept.counted
    options = {cell_text(option, 80) for option in column.options}
    is_plain = column.is_by_number or asked.text
    split = counted.kept.split
    shows_groups = asked.text or split is None or split.column.group is not Group.ANSWER
    return QuestionPicture(
        question=name,
        counted=column.counted_as.value,
        by=asked.by,
        read=counted.read,
        total=counted.total,
        complete=counted.is_complete,
        panels=[
            PicturePanel(
                label=panel.label if shows_groups else "",
                rows=panel.rows,
                bars=[
                    PictureBar(
                        label=label.text if is_said else "",
                        kind=label.kind.value,
                        count=count,
                        filter=condition if is_said and shows_groups else "",
                    )
                    for label, count, condition in zip(chart.bars, panel.counts, filters, strict=True)
                    for is_said in (is_plain or label.kind.value != "value" or label.text in options,)
                ],
            )
            for panel, filters in zip(chart.panels, drawn.filters, strict=True)
        ],
        samples=list(column.samples) if asked.text else [],
    )


QUESTION_LIST = PageOperation(
    name="questions",
    summary="The questions of a run, and the columns by which their answers can be split.",
    path="/runs/{run}/questions",
    parameters=QuestionsAsked,
    reply=QuestionsListed,
    call=_question_list,
)
QUESTION_PICTURE = PageOperation(
    name="question",
    summary="How the answers to a question are distributed.",
    path="/runs/{run}/questions/{question}",
    parameters=PictureAsked,
    reply=QuestionPicture,
    call=_question_picture,
)
