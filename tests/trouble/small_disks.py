"""Small disks that a child process mounts for itself, so that a test can fill one."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.trouble.children import run_child

UNSHARE = ("unshare", "-Urm")


def needs_small_disks() -> None:
    """Skip where this machine lets nobody mount a small disk of their own."""
    try:
        subprocess.run([*UNSHARE, "true"], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"unshare -Urm is not permitted here, so no small disk can be mounted: {error}")


def on_small_disk(how: str, folder: Path) -> list[Any]:
    needs_small_disks()
    return run_child("full_disk", how, folder, within=UNSHARE)
