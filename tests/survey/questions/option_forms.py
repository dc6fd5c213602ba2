"""Writes chosen options in the forms that models send them in, for property tests."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from headrace.survey.questions import Question

TEXT = {"question_name": "q", "question_text": "Well?"}
_WORDS = [
    "apple",
    "Berlin",
    "blue",
    "sky",
    "tea",
    "north",
    "Agree",
    "zinc",
    "left-handed",
    "Über",
    "naïve",
    "it's",
    "C++",
]
_AROUND_ONE = [
    "{}", "  {} ", "{}.", '"{}"', "**{}**", "`{}`", "```\n{}\n```", "{upper}", "Answer: {}", "My choice is {}.", "- {}",
    "{}\nBecause it is.", "{}\n\nComment: I don't like the others.", "I would take {} today.", "Surely {}, I guess",
    "{number}", "{number}. {}", "{number}: {}", "({number})", "Option {number}", "{number}\nsince",
    '{{"answer": {json}}}', '{{"answer": {json},}}', '```json\n{{"answer": {json}, "comment": "so"}}\n```',
    'Sure! {{"answer": {json}}}', '{{"answer": {number}}}', "[{json}]",
]  # fmt: skip


def answered(question: Question, text: str) -> Any:
    """What a question makes of a reply, as an interview does."""
    return question.accept(question.read(text)[0])


def option_lists() -> st.SearchStrategy[list[str]]:
    """A few options of one to three words; one may hold another."""
    option = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=3).map(" ".join)
    return st.lists(option, min_size=2, max_size=8, unique_by=str.casefold)


@st.composite
def in_one_form(draw: st.DrawFn, option: str, number: int) -> str:
    form = draw(st.sampled_from(_AROUND_ONE))
    return form.format(option, upper=option.upper(), number=number, json=json.dumps(option))


@st.composite
def in_list_form(draw: st.DrawFn, options: list[str], numbers: list[int]) -> str:
    """Several options, in their order."""
    listed = json.dumps(options, ensure_ascii=draw(st.booleans()))
    forms = [
        listed,
        repr(options),
        f"{listed[:-1]}, ]",
        f"```json\n{listed}\n```",
        json.dumps(numbers),
        ", ".join(map(str, numbers)),
        ", ".join(options),
        "; ".join(each.upper() for each in options),
        f"[{', '.join(options)}]",
        "\n".join(options),
        "\n".join(f"- {each}" for each in options),
        "\n".join(f"{place}. {each}" for place, each in enumerate(options, 1)),
        f'{{"answer": {listed}, "comment": "so"}}',
        f'{{"answer": {listed},}}',
        f"Sure, here it is: {listed}",
    ]
    behind = draw(st.sampled_from(["", "\n\nBecause I say so.", "\n\nComment: I don't like the rest."]))
    return draw(st.sampled_from(forms)) + behind
