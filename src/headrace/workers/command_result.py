"""The result of a program, as an agent gets it and the journal keeps it. Running it is workers.command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from headrace.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a program ended: `code`, or the `signal` that killed it. `output` is its standard output as text, `errors`
    the end of its standard error.
    """

    code: int | None = None
    signal: int | None = None
    output: str = ""
    errors: str = ""
    peak_bytes: int = 0

    @property
    def succeeded(self) -> bool:
        return self.code == 0

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> CommandEnd:
        return cls(**value)

    @classmethod
    def from_owner(cls, value: object) -> CommandEnd:
        """Read the result that a run's owner gives where the program's end was not journaled; fields may be missing."""
        try:
            end = msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise _not_an_end(value, str(error).rstrip(".")) from None
        if unknown := set(cast("dict[Any, Any]", value)) - set(cls.__dataclass_fields__):
            raise _not_an_end(value, f"a program's end has no {min(map(str, unknown))!r}")
        if (end.code is None) == (end.signal is None):
            raise _not_an_end(value, "it has either a code or the signal that killed it")
        return end


def _not_an_end(value: object, why: str) -> OptionError:
    return OptionError(
        f"{value!r:.100} does not say how the program ended: {why}.",
        fix='Give result={"code": 0, "output": "..."}, or again=True to run it again.',
    )
