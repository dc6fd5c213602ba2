"""The peer: EDSL, in a virtual environment of its own, running the same workload with its own test model.

It is installed once, through the machine's pip configuration, into .venv-peers/ (HEADRACE_PEERS moves it). Where that
fails, the tables say so and have no peer. Its home is a fresh directory, so that no earlier run serves as its cache.
"""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import ROOT, ChildFailed, run_child

VERSION = "1.0.9"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What EDSL needed for each of so many further interviews."""

    interviews: int
    cpu_us: float
    resident_kb: float
    written_bytes: float
    left_bytes: float
    loop_ms: float


def measure(interviews: int, directory: Path) -> Peer | None:
    """Run the workload with EDSL; None, with a word on standard error, where it cannot be had."""
    try:
        python = _installed()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"EDSL {VERSION} could not be installed: {error}", file=sys.stderr)
        return None
    home = directory / f"edsl-{interviews}"
    home.mkdir()
    try:
        ended = run_child("edsl_run", interviews, python=python, env=_surroundings(home))
    except ChildFailed as error:
        print(f"EDSL: {error}", file=sys.stderr)
        return None
    return Peer(interviews=interviews, **ended.figures)


def _surroundings(home: Path) -> dict[str, str]:
    """An account that EDSL has never seen, and no service it could reach."""
    places = {name: str(home / name) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    return {"HOME": str(home), "EXPECTED_PARROT_API_KEY": "", **places}


def _installed() -> Path:
    base = Path(os.environ.get("HEADRACE_PEERS") or ROOT / ".venv-peers").absolute()
    place = base / f"edsl-{VERSION}"
    python, finished = place / "bin" / "python", place / "installed"
    if not finished.exists():
        print(f"installing EDSL {VERSION} into {place} (once) ...", file=sys.stderr)
        venv.create(place, clear=True, symlinks=True, with_pip=True)
        (base / ".gitignore").write_text("*\n")
        install = [python, "-m", "pip", "install", "-qq", f"edsl=={VERSION}"]
        subprocess.run(install, check=True, stdout=sys.stderr)
        finished.touch()
    return python
