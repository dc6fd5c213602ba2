"""Runs against servers that break HTTP: no answer goes to another's question, and the run stays in the user's hands."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from headrace import Model, QuestionFreeText, ScenarioList, Survey
from tests.models.raw_server import RawCall, RawServer, ok

QUESTIONS = 64
MOST_BYTES = 250_000_000


def test_a_late_second_response_becomes_nobody_s_answer(tmp_path: Path):
    async def twice(call: RawCall) -> None:
        call.write(ok(f"about {call.prompt}"))
        await asyncio.sleep(0.004)
        call.write(ok(f"late, about {call.prompt}"))

    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    with RawServer(twice) as server:
        model = Model("m", service_name="openai_compatible", base_url=server.url)
        job = asked.by(ScenarioList.from_list("n", range(QUESTIONS)), model)
        results = job.run(tmp_path / "a.run", concurrency=16)
    found = {row["scenario.n"]: row["answer.q"] for row in results.to_dicts(remove_prefix=False)}
    wrong = {n: answer for n, answer in found.items() if not answer.startswith(f"about Who is {n}?")}
    assert len(found) == QUESTIONS
    assert not wrong
    assert server.calls == QUESTIONS


PROGRAM = """
import sys
from pathlib import Path
from headrace import Model, QuestionFreeText, ScenarioList, Survey
from headrace.errors import Interrupted
asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
model = Model("m", service_name="openai_compatible", base_url=sys.argv[1])
print("go", flush=True)
try:
    asked.by(ScenarioList.from_list("n", range(100)), model).run("a.run", concurrency=20)
except Interrupted:
    # Not ru_maxrss: that is never less than what the process had that started this one.
    (peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    print(int(peak.split()[1]) * 1024, flush=True)
"""


def test_a_run_that_meets_1xx_replies_without_end_stays_small_and_hears_ctrl_c(tmp_path: Path):
    async def flood(call: RawCall) -> None:
        await call.flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    with RawServer(flood) as server:
        command = [sys.executable, "-c", PROGRAM, server.url]
        environment = {**os.environ, "HEADRACE_HOME": str(tmp_path / "home")}
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as ran:
            assert ran.stdout is not None
            assert ran.stdout.readline() == "go\n"
            until_s = time.monotonic() + 20
            while server.calls < 3 and time.monotonic() < until_s:
                time.sleep(0.05)
            status = [sys.executable, "-m", "headrace", "status", "a.run"]
            told = subprocess.run(
                status, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30, check=True
            )
            assert "0 of 100 interviews" in told.stdout, told
            for _ in range(2):
                ran.send_signal(signal.SIGINT)
                time.sleep(0.5)
            printed, _ = ran.communicate(timeout=20)
    assert int(printed) < MOST_BYTES
