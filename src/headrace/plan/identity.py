"""Whether a run file and a job are the same plan. Covers: a digest for each part. Does not cover: differences in words
(plan.differences).

Lengths are left out where a plan may grow: iterations always, agents and scenarios with extend=True
(store.run_file.run_file).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.display import counted
from headrace.errors import PlanMismatch, spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    survey: str
    agents: str
    scenarios: str
    models: str

    @property
    def digest(self) -> str:
        return digest(f"{self.survey}|{self.agents}|{self.scenarios}|{self.models}".encode())

    def may_extend(self, found: Identity) -> bool:
        """Whether only the agents and scenarios differ, which may be because they grew."""
        return (self.survey, self.models) == (found.survey, found.models)

    def mismatch(self, found: Identity, path: Path, differences: Iterable[str]) -> PlanMismatch:
        """The error that the file's plan is another one; `differences` say it in words."""
        fix = "Use another path, or start over with {fresh} (the old file is kept under another name)."
        if self.may_extend(found):
            fix = "If the list only grew at its end, {extend} goes on in the same file. " + fix
        fix = spelled(fix, fresh=True, extend=True)
        return PlanMismatch(path, expected=asdict(self), found=asdict(found), fix=fix, differences=differences)


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def described(length: int, what: str, content_digest: str) -> str:
    """A part of an identity that a person can read too: `1,000 agents #3f2a...`."""
    return f"{counted(length, what)} #{content_digest}"
