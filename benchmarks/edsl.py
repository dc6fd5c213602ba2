"""The peer: EDSL, in a virtual environment of its own, running the same workload with its own test model, at its best.

The limit of its test model is lifted and its cache is in memory (children/edsl_run.py). It is measured as its users run
it, and with its object store switched off; with names in the texts of its questions, and without. Where it cannot be
had, the tables say so and have no peer. Its home is a fresh directory, so that no earlier run serves as its cache.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import installed
from benchmarks.processes import ChildFailed, run_child

VERSION = "1.0.9"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What EDSL needed for each of so many further interviews. `keeps`: its object store was on."""

    interviews: int
    keeps: bool
    has_names: bool
    cpu_us: float
    resident_kb: float
    written_bytes: float
    left_bytes: float
    loop_ms: float


def measure(interviews: int, directory: Path, *, keeps: bool, has_names: bool) -> Peer | None:
    """Run the workload with EDSL; None, with a word on standard error, where it cannot be had."""
    python = installed(f"edsl=={VERSION}")
    if python is None:
        return None
    how, texts = "kept" if keeps else "unkept", "named" if has_names else "plain"
    home = directory / f"edsl-{interviews}-{how}-{texts}"
    home.mkdir()
    try:
        ended = run_child("edsl_run", interviews, how, texts, python=python, env=surroundings(home))
    except ChildFailed as error:
        print(f"EDSL: {error}", file=sys.stderr)
        return None
    return Peer(interviews=interviews, keeps=keeps, has_names=has_names, **ended.figures)


def surroundings(home: Path) -> dict[str, str]:
    """An account that EDSL has never seen, and no service it could reach."""
    places = {name: str(home / name) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    return {"HOME": str(home), "EXPECTED_PARROT_API_KEY": "", **places}
