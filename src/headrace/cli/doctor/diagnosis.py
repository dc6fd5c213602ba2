"""One finding of `headrace doctor`: its subject, its health, and the fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    OK = "ok"
    NONE = "none"  # not there, and not needed
    UNPROVEN = "unproven"  # looks possible; only trying would tell
    CARE = "care"  # works, with something to know
    BROKEN = "broken"  # Headrace cannot run like this


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    name: str
    state: Health
    found: str
    fix: str = ""
