"""A page that a program starts beside its runs."""

import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headrace.memory.measure.process import children_of
from tests.cli.live import SURVEY, live
from tests.trouble.children import until

PROGRAM = """
import sys
from headrace import Model, QuestionFreeText, Survey
job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(Model("test", canned_response="x"))
job.run("a.run", view=True)
job.run("b.run", view=True)
print("ran", flush=True)
sys.stdin.read()
"""


def get(address: str, path: str = "") -> tuple[int, str]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=30)
    token = parts.query.removeprefix("token=")
    try:
        connection.request("GET", path or parts.path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def is_answered(address: str) -> bool:
    try:
        return get(address)[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_one_page_shows_the_runs_of_a_program_and_ends_with_it(tmp_path: Path, ending: signal.Signals):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert program.stderr is not None
        addresses = [program.stderr.readline().removeprefix("page: ").strip() for _ in range(2)]
        assert program.stdout.readline() == "ran\n"
        assert len({urlsplit(address).port for address in addresses}) == 1
        for name, address in zip(("a.run", "b.run"), addresses, strict=True):
            status, body = get(address)
            assert status == 200
            assert f"<title>{name}" in body
        until(lambda: not children_of(program.pid), "the page to be nobody's child")
        program.send_signal(ending)
        program.wait(30)
        until(lambda: not is_answered(addresses[0]), "the page to end", every_s=0.1)
    finally:
        program.kill()
        program.communicate()


def test_the_command_prints_where_its_run_is_shown(tmp_path: Path):
    (tmp_path / "s.yaml").write_text(SURVEY)
    words = ["run", "s.yaml", "--model", "test,latency_s=0.05", "--n", "100000", "-o", "a.run", "--view"]
    with live(tmp_path, *words, environment={**os.environ, "HEADRACE_HOME": str(tmp_path)}) as run:
        address = run.error_line().removeprefix("page: ").strip()
        assert "running" in get(address)[1]
        run.interrupt()
        assert run.ended()[0] == 130
    until(lambda: not is_answered(address), "the page to end", every_s=0.1)
