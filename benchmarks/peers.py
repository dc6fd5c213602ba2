"""Where peers live: each in a virtual environment of its own, never in the project's.

One is installed once, through the machine's pip configuration, into .venv-peers/ (HEADRACE_PEERS moves it). Where that
fails, a word on standard error says so, and the tables have no such peer.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.processes import ROOT


def installed(requirement: str, *beside: str) -> Path | None:
    """The Python that has `requirement`, such as "loky==3.7.0"; None where it cannot be had.

    `beside`: packages that it does not bring along and some of its functions need, in any version.
    """
    try:
        python = _installed(requirement)
        for package in beside:
            _add(python, package)
        return python
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{requirement} could not be installed: {error}", file=sys.stderr)
        return None


def _installed(requirement: str) -> Path:
    base = Path(os.environ.get("HEADRACE_PEERS") or ROOT / ".venv-peers").absolute()
    place = base / requirement.replace("==", "-")
    python, finished = place / "bin" / "python", place / "installed"
    if not finished.exists():
        print(f"installing {requirement} into {place} (once) ...", file=sys.stderr)
        venv.create(place, clear=True, symlinks=True, with_pip=True)
        (base / ".gitignore").write_text("*\n")
        install = [python, "-m", "pip", "install", "-qq", requirement]
        subprocess.run(install, check=True, stdout=sys.stderr)
        finished.touch()
    return python


def _add(python: Path, package: str) -> None:
    tried = subprocess.run([python, "-c", f"import {package}"], stderr=subprocess.DEVNULL, check=False)
    if tried.returncode:
        print(f"installing {package} beside it (once) ...", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "-qq", package], check=True, stdout=sys.stderr)
