"""The values of values.json: what each program gives with EDSL and with Headrace, and why where they differ.

By program: `edsl` is the value that EDSL gives (`edsl_error` where it raises), as scripts/edsl_values.py found it.
`ours` and `reason` stand where Headrace gives another value on purpose; both are written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RUNNER = HERE / "runner.py"
VALUES = HERE / "values.json"
EDSL_VERSION = "1.0.9"
_LISTED = (HERE / "not_yet.txt").read_text("utf-8").splitlines()
# Programs whose feature has not landed yet, by name.
NOT_YET = {line.split()[0] for line in _LISTED if line and not line.startswith("#")}


class KeptValue(NamedTuple):
    """`reason` is empty where both give the same value."""

    ours: Any
    reason: str


def kept_values() -> dict[str, KeptValue]:
    """What each program has to give here."""
    found: dict[str, dict[str, Any]] = json.loads(VALUES.read_text("utf-8"))
    return {
        name: KeptValue(kept["ours"], kept["reason"]) if "ours" in kept else KeptValue(kept["edsl"], "")
        for name, kept in found.items()
    }


def program_names() -> list[str]:
    return sorted(program.stem for program in PROGRAMS.glob("*.py"))
