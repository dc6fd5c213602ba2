"""A claim: whose file it is while the process that writes it lives, and after that process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.store.engine_file.engine_file import EngineFile

_WRITER = """
import sys, time
from pathlib import Path
from headrace.store.engine_file.engine_file import EngineFile
file = EngineFile.open(Path(sys.argv[1]))
print("open", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="claims tell live from dead by /proc")
def test_a_killed_writer_that_nobody_waits_for_does_not_keep_its_file(tmp_path: Path) -> None:
    path = tmp_path / "agents.run"
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        writer.kill()
        os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays a zombie
        EngineFile.open(path).close()
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
