"""Writes an answer in the forms that models send it in, for property tests of each kind."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from headrace.survey.questions import Question

_COURTESIES = ["Sure! Here it is:", "I think this is right.", "It's what I'd choose [so far].", "Well {x},"]


def answer_to(question: Question, text: str) -> Any:
    """What a question makes of a reply, as an interview does."""
    return question.accept(question.read(text)[0])


@st.composite
def written_forms(draw: st.DrawFn, value: Any) -> str:
    """A reply that holds this value: as JSON or Python writes it, in a fence, an envelope, a sentence."""
    text = draw(st.sampled_from([json.dumps, repr, _with_commas, _indented]))(value)
    text = draw(
        st.sampled_from(["{}", "```json\n{}\n```", '{{"answer": {}, "comment": "so"}}', "{{'answer': {}}}"])
    ).format(text)
    before = draw(st.sampled_from(["", *(f"{words} " for words in _COURTESIES), "<think>[1] or {2}?</think>"]))
    behind = draw(st.sampled_from(["", *(f"\n{words}" for words in _COURTESIES)]))
    return f"{before}{text}{behind}"


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _with_commas(value: Any) -> str:
    """JSON with a comma behind each last item."""
    match value:
        case list():
            return "[" + "".join(f"{_with_commas(item)}, " for item in value) + "]"
        case dict():
            return "{" + "".join(f"{json.dumps(key)}: {_with_commas(item)}, " for key, item in value.items()) + "}"
        case _:
            return json.dumps(value)
