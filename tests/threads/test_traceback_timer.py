import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.threads.traceback_timer import TracebackTimer

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has such timers")


def test_asking_for_the_stack_of_a_thread_that_is_only_slow_harms_nobody(tmp_path):
    command = [sys.executable, "-m", "tests.threads.programs.only_slow", str(tmp_path / "stack")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert int(ended.stdout) == 20


def test_a_signal_that_the_program_uses_is_left_alone(tmp_path):
    before = signal.signal(signal.SIGURG, lambda number, frame: None)
    try:
        assert TracebackTimer.take(tmp_path / "stack") is None
    finally:
        signal.signal(signal.SIGURG, before)
    timer = TracebackTimer.take(tmp_path / "stack")
    assert timer is not None
    assert TracebackTimer.take(tmp_path / "other") is None
    timer.close()
    assert not list(tmp_path.iterdir())
