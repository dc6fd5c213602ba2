"""An address that refuses connections is told at once, once for each incident, wherever the user looks."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace import Engine, Model, QuestionFreeText, ScenarioList, Survey
from headrace.limits import EndpointLimits
from headrace.models import shared_limiters
from tests.models.server import HostileServer

REFUSED = "cannot be reached: Connection refused"


@pytest.fixture
def port() -> int:
    """One that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def _quick_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        shared_limiters, "endpoint_limits", lambda _: EndpointLimits(first_away_s=0.05, longest_away_s=0.1)
    )


def a_model(port: int) -> Model:
    return Model("m", service_name="openai_compatible", base_url=f"http://127.0.0.1:{port}/v1")


@contextmanager
def back_later(port: int, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A server that starts on the port some probes after the first failed connection."""
    server = HostileServer(port)

    def start() -> None:
        until_s = time.monotonic() + 30
        while not caplog.records and time.monotonic() < until_s:
            time.sleep(0.02)
        time.sleep(0.3)
        server.__enter__()

    starting = threading.Thread(target=start)
    starting.start()
    try:
        yield
    finally:
        starting.join()
        server.__exit__()


@pytest.mark.usefixtures("_quick_probes")
@pytest.mark.parametrize("workers", [0, 1])
def test_a_program_gets_one_warning_and_hears_when_the_service_is_back(port, tmp_path, caplog, workers):
    caplog.set_level(logging.INFO, logger="headrace")
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    job = survey.by(ScenarioList.from_list("n", range(20)), a_model(port))
    with back_later(port, caplog):
        results = job.run(tmp_path / "a.run", concurrency=8, workers=workers)
    assert (len(results), results.stats().failed) == (20, 0)
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "headrace"]
    assert [level for level, _ in told] == ["WARNING", "INFO"]
    assert told[0][1].startswith(f"m at http://127.0.0.1:{port}/v1 {REFUSED}")
    assert told[1][1].startswith("m is reached again, after ")


@pytest.mark.usefixtures("_quick_probes")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("others", [0, 1])
def test_each_address_that_is_away_is_logged_once(port, tmp_path, caplog, capfd, others, workers):
    """Of several: one beside a server that answers, and all of them until one is back."""
    caplog.set_level(logging.INFO, logger="headrace")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        second = probe.getsockname()[1]
    addresses = [f"http://127.0.0.1:{each}/v1" for each in (port, second)]
    model = Model("m", service_name="openai_compatible", base_url=addresses)
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    job = survey.by(ScenarioList.from_list("n", range(20)), model)
    with HostileServer(second) if others else back_later(second, caplog):
        results = job.run(tmp_path / "a.run", concurrency=8, workers=workers)
    assert (len(results), results.stats().failed) == (20, 0)
    assert capfd.readouterr().err == ""
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "headrace"]
    away = f"m at {{}} {REFUSED}. Its other addresses are asked meanwhile."
    assert told.count(("WARNING", away.format(addresses[0]))) == 1
    if others:
        assert len(told) == 1
    else:
        assert told.count(("WARNING", away.format(addresses[1]))) == 1
        assert ("INFO", f"m at {addresses[1]} is reached again.") in told
        none = "m: none of its 2 addresses can be reached. It is tried again until it answers; stopping loses nothing."
        assert told.count(("WARNING", none)) == 1


@pytest.mark.usefixtures("_quick_probes")
def test_an_engine_records_it_as_an_event(port, tmp_path, caplog):
    async def agent(ctx):
        return await ctx.ask(a_model(port), "Well?")

    async def main() -> tuple[str, list[tuple[str, str]]]:
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            run = await engine.submit(agent)
            answer = await run.result()
            return answer, [(event.what, event.reason) for event in await engine.events()]

    with back_later(port, caplog):
        answer, events = asyncio.run(main())
    told = [event for event in events if event[0].startswith("model ")]
    assert answer == "Good"
    assert [what for what, _ in told] == ["model away", "model back"]
    assert f"http://127.0.0.1:{port}/v1 {REFUSED}" in told[0][1]


SCRIPT = """
import sys
from headrace import Model, QuestionFreeText, Survey
survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
survey.by(Model("m", service_name="openai_compatible", base_url=sys.argv[1])).run("a.run")
"""


@pytest.mark.parametrize("way", ["script", "command"])
def test_a_script_and_the_command_say_it_on_standard_error_that_is_no_terminal(port, tmp_path, way):
    address = f"http://127.0.0.1:{port}/v1"
    (tmp_path / "s.yaml").write_text("questions:\n  - {kind: free_text, name: q, text: Well}\n")
    if way == "script":
        command = [sys.executable, "-c", SCRIPT, address]
    else:
        model = f"m,service_name=openai_compatible,base_url={address}"
        command = [sys.executable, "-m", "headrace", "run", "s.yaml", "--model", model, "-o", "a.run"]
    said = tmp_path / "said"
    environment = {**os.environ, "HEADRACE_HOME": str(tmp_path / "home")}
    with said.open("wb") as file:
        ran = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=file)
    try:
        until_s = time.monotonic() + 30
        while REFUSED not in said.read_text() and time.monotonic() < until_s:
            time.sleep(0.05)
        time.sleep(0.3)
        assert said.read_text().count(REFUSED) == 1
        assert f"m at {address} {REFUSED}" in said.read_text()
        assert way == "script" or said.read_text().startswith("headrace: m at ")
        ran.send_signal(signal.SIGINT)
        ran.send_signal(signal.SIGINT)
        ran.wait(20)
    finally:
        ran.kill()
        ran.wait()
