"""Writes what the real EDSL gives for each conformance program into tests/conformance/values.json.

    .venv/bin/python scripts/edsl_values.py [program ...]

EDSL is installed once into a virtual environment of its own (benchmarks/peers.py), with pandas, which some programs
use. Its home is a fresh directory, and it reaches no service. What the file says about Headrace (`ours`, `reason`)
stays as it is. Does not cover: running the programs with Headrace (tests/conformance/test_conformance.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.peers import installed
from tests.conformance.conformance_values import EDSL_VERSION, PROGRAMS, RUNNER, VALUES, program_names

_MOST_S = 1200
_ERROR_CHARS = 160


def main() -> None:
    python = installed(f"edsl=={EDSL_VERSION}", "pandas")
    if python is None:
        sys.exit(1)
    chosen = sys.argv[1:]
    kept: dict[str, dict[str, Any]] = json.loads(VALUES.read_text("utf-8")) if VALUES.exists() else {}
    for name, outcome in _outcomes(python, chosen).items():
        about_us = {key: value for key, value in kept.get(name, {}).items() if key in {"ours", "reason"}}
        kept[name] = {**_edsl_part(outcome), **about_us}
    there = set(program_names())
    VALUES.write_text(_as_text({name: kept[name] for name in sorted(kept) if name in there}), "utf-8")


def _outcomes(python: Path, chosen: list[str]) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="edsl-home-") as home:
        places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), home)
        environment = {**os.environ, **places, "EXPECTED_PARROT_API_KEY": ""}
        outcomes = Path(home) / "outcomes.json"
        command = [python, RUNNER, "edsl", PROGRAMS, outcomes, *chosen]
        subprocess.run(command, env=environment, check=True, timeout=_MOST_S)
        return json.loads(outcomes.read_text("utf-8"))


def _edsl_part(outcome: dict[str, Any]) -> dict[str, Any]:
    if "value" in outcome:
        return {"edsl": outcome["value"]}
    # Some of its errors draw a table: the words before it are enough.
    return {"edsl_error": outcome["error"].partition("\x1b")[0][:_ERROR_CHARS].rstrip()}


def _as_text(kept: dict[str, dict[str, Any]]) -> str:
    """One line for each part of an entry: a changed value is a changed line."""
    entries: list[str] = []
    for name, parts in kept.items():
        lines = [f"    {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in parts.items()]
        entries.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(entries) + "\n}\n"


if __name__ == "__main__":
    main()
