"""Pictures that are made smaller: where they lie, and what a killed process leaves of them."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headrace import FileStore
from headrace.survey.files import owned_folders
from tests.pictures import png

CHILD = """
import sys, time
from headrace import FileStore
from headrace.survey.files.smaller_pictures import SMALLER
SMALLER.take(FileStore(sys.argv[1]), 100_000, None)
print("made", flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(owned_folders, "MAKING_S", 0.0)
    (tmp_path / "tmp").mkdir()
    picture = FileStore(png(tmp_path / "a.png", filler_bytes=500_000))
    command, environment = [sys.executable, "-c", CHILD, picture.path], {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "made\n"
            (left,) = (tmp_path / "tmp").iterdir()
            owned_folders.remove_left("headrace-pictures-")
            assert left.exists()  # its process lives
        finally:
            child.send_signal(signal.SIGKILL)
    owned_folders.remove_left("headrace-pictures-")
    assert not left.exists()
