"""A plan's identity: a digest for each of its parts, by which a run file and a job know that they are the same plan.

A function in a model's parameters counts by its name and its source, not by what it has captured; a model's price,
limits and time-outs do not count. Does not cover: differences in words (plan.differences).

Lengths are left out where a plan may grow: iterations always, agents and scenarios with extend=True
(store.run_file.run_file).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import asdict

from headrace.display import counted
from headrace.errors import PlanMismatch, spelled
from headrace.survey.values import encode_value

if TYPE_CHECKING:
    from headrace.expressions import Expression
    from headrace.plan.lists import AgentList, ModelList, ScenarioList
    from headrace.survey.survey import Survey


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Each part as text: `1,000 agents #3f2a...`; `where` is empty for a job that leaves nothing out."""

    survey: str
    agents: str
    scenarios: str
    models: str
    where: str = ""

    @property
    def digest(self) -> str:
        parts = [self.survey, self.agents, self.scenarios, self.models, *([self.where] if self.where else [])]
        return digest("|".join(parts).encode())

    def may_extend(self, found: Identity) -> bool:
        """Whether only the agents and scenarios differ, which may be because they grew."""
        return (self.survey, self.models, self.where) == (found.survey, found.models, found.where)

    def mismatch(self, found: Identity, path: Path, differences: Iterable[str]) -> PlanMismatch:
        """The error that the file's plan is another one; `differences` say it in words."""
        fix = "Use another path, or start over with {fresh} (the old file is kept under another name)."
        if self.may_extend(found):
            fix = "If the list only grew at its end, {extend} goes on in the same file. " + fix
        fix = spelled(fix, fresh=True, extend=True)
        return PlanMismatch(path, expected=asdict(self), found=asdict(found), fix=fix, differences=differences)


def identity_of(
    survey: Survey, agents: AgentList, scenarios: ScenarioList, models: ModelList, conditions: Sequence[Expression] = ()
) -> Identity:
    """The identity of the plan that asks this survey of these agents, about these scenarios, with these models."""
    model_rows = b"\n".join(model.identity_row() for model in models)
    return Identity(
        survey=described(len(survey), "question", digest(survey.to_row())),
        agents=described(len(agents), "agent", agents.digest),
        scenarios=described(len(scenarios), "scenario", scenarios.digest),
        models=described(len(models), "model", digest(model_rows)),
        where=described(len(conditions), "condition", digest(where_row(conditions).encode())) if conditions else "",
    )


def where_row(conditions: Sequence[Expression]) -> str:
    """The conditions as a run file holds them."""
    return encode_value([each.source for each in conditions]).decode()


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def described(length: int, what: str, content_digest: str) -> str:
    """A part of an identity as text."""
    return f"{counted(length, what)} #{content_digest}"
