import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_the_example_runs_as_written(tmp_path, isolation):
    # In a process of its own: its budget of 1 GB would also have to hold what other tests have left in this one.
    command = [sys.executable, "-m", "tests.agents.engine.programs.documented", isolation]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("done running 0; waiting none; unfinished none; memory ")
