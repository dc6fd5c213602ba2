"""How a program ended, as an agent sees it and the journal keeps it. Does not cover: running it (execute.command)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a program ended: `code`, or the `signal` that killed it. `output` is its standard output as text, `errors`
    the end of its standard error.
    """

    code: int | None
    signal: int | None
    output: str
    errors: str
    peak_bytes: int

    @property
    def succeeded(self) -> bool:
        return self.code == 0

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> CommandEnd:
        return cls(**value)
