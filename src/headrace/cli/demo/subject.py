"""A demo's subject as a value: the job, which columns are shown, and what its bars count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.plan.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`columns` are by heading, the important ones first; bars count the answers to `question`, for each `group`."""

    file_name: str
    opening: str
    job: Callable[[int], Job]
    columns: dict[str, str]
    right: tuple[str, ...]
    heading: str
    question: str
    group: str
    styles: dict[str, str]
    where: str
    query: str
