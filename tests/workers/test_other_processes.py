"""Programs that make processes of their own beside a job: forks, and children of multiprocessing."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

JOB = """
import multiprocessing, os
from headrace import Model, QuestionFreeText, ScenarioList, Survey

asked = QuestionFreeText(question_name="q", question_text="Say {{ scenario.x }}")
job = Survey([asked]).by(ScenarioList.from_list("x", list(range(40)))).by(Model("test", canned_response="ok"))
"""

RETURNING = """
forks = []

def fork(result):
    if not forks:
        forks.append(os.fork())

if __name__ == "__main__":
    try:
        print(len(job.run("a.run", on_result=fork, workers=WORKERS)), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(forks[0], 0)[1]))
"""

CHILD = """
def conduct(path):
    return len(job.run(path, workers=2, memory="+200MB"))

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(conduct, ["a.run"]))
"""


def printed(directory: Path, program: str) -> str:
    (directory / "main.py").write_text(textwrap.dedent(JOB + program))
    ran = subprocess.run(
        [sys.executable, "main.py"], cwd=directory, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stderr == ""
    return ran.stdout


@pytest.mark.parametrize("workers", ["None", "2"])
def test_a_fork_that_returns_from_on_result_is_told_that_the_run_is_its_parents(tmp_path: Path, workers: str) -> None:
    lines = printed(tmp_path, RETURNING.replace("WORKERS", workers)).splitlines()
    assert len(lines) == 3
    assert {"40", "7"} < set(lines)
    assert any("HeadraceError: This process is a fork of the one that runs" in line for line in lines)


def test_a_child_that_multiprocessing_spawned_may_have_workers(tmp_path: Path) -> None:
    assert printed(tmp_path, CHILD) == "[40]\n"
