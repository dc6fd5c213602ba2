"""Which earlier questions a question remembers, and how they stand in its prompt.

Skipped and failed questions are left out of a memory, so a question waits for what it remembers and never fails for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from headrace.errors import SurveyError
from headrace.survey.wording.own_wording import Wording

# For each question that remembers some: the names of those, in the order of the survey.
Memory: TypeAlias = dict[str, tuple[str, ...]]


def with_memories(memory: Memory, question: str, earlier: Iterable[str], positions: Mapping[str, int]) -> Memory:
    """The memory in which `question` remembers these as well. All of them are questions of the survey."""
    remembered = {*memory.get(question, ()), *earlier}
    for name in sorted(remembered):
        if positions[name] >= positions[question]:
            raise SurveyError(
                f"Question {question!r} cannot remember {name!r}, which is not asked before it.",
                fix="Put it earlier in the survey.",
            )
    return {**memory, question: tuple(sorted(remembered, key=positions.__getitem__))} if remembered else memory


def without_memory_of(memory: Memory, name: str) -> Memory:
    """The memory of a survey that loses a question."""
    kept = {asked: tuple(each for each in names if each != name) for asked, names in memory.items() if asked != name}
    return {asked: names for asked, names in kept.items() if names}


def recalled(lines: Iterable[str], wording: Wording) -> str:
    """The part of a prompt that repeats these questions with their answers; empty where there is none."""
    told = "\n\n".join(line for line in lines if line)
    return f"{wording.before_memory}\n\n{told}\n\n{wording.after_memory}\n\n" if told else ""


def memory_line(text: str, answer: Any) -> str:
    """One question with its answer, as a later prompt repeats them."""
    return f"Question: {text}\nAnswer: {answer if isinstance(answer, str) else _as_text(answer)}"


def _as_text(answer: Any) -> str:
    """An answer in words: the items of a list with commas between, JSON for what is nested."""
    if isinstance(answer, list):
        items = cast("list[Any]", answer)
        if not any(isinstance(item, (list, dict)) for item in items):
            return ", ".join(map(str, items))
    return msgspec.json.encode(answer).decode() if isinstance(answer, (list, dict)) else str(answer)
