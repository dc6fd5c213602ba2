"""`headrace resume` of a file from elsewhere: what is shown, what is asked, and what happens without a terminal."""

import json
import shlex
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import AgentList, FileStore, Job, Model, QuestionFreeText, Scenario, Survey
from headrace.store.run_file.stored_job.kept_budgets import kept_budgets
from tests.cli.forked import headrace
from tests.cli.terminals import in_terminal
from tests.forks import Forks
from tests.models.server import HostileServer
from tests.pictures import png
from tests.store.forging import fitted

SECRET = "a-victim's-secret-0123456789"  # must not be sent
VARIABLE = "AWS_SECRET_ACCESS_KEY"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


@pytest.fixture
def evil(server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: Forks) -> Path:
    """A run file that asks for this user's secret; one of its four interviews is done."""
    path = tmp_path / "evil.run"
    with monkeypatch.context() as there:
        there.setenv("HEADRACE_HOME", str(tmp_path / "elsewhere"))
        there.setenv(VARIABLE, "the-attacker's-own-0123456789")
        a_job(server, api_key_env=VARIABLE).run(path, limit=1, max_tokens_total=900, memory="95%")
    monkeypatch.setenv(VARIABLE, SECRET)
    return path


def a_job(server: HostileServer, **parameters: Any) -> Job:
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?")])
    model = Model("m\x1b[31m", base_url=server.url, service_name="openai_compatible", **parameters)
    return asked.by(AgentList.from_list("n", range(4))).by(model)


def test_without_a_terminal_a_file_from_elsewhere_is_refused_with_the_exact_command(evil: Path, server: HostileServer):
    before = server.calls
    for words in (["status"], ["results"], ["results", "--format", "csv"]):
        assert headrace(evil.parent, words[0], "evil.run", *words[1:]).returncode == 0
    refused = headrace(evil.parent, "resume", "evil.run")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"with the value of {VARIABLE}, which is not that service's own key" in refused.stderr
    assert "3 calls left" in refused.stderr
    assert "of 900 tokens" in refused.stderr
    assert "\x1b" not in refused.stderr
    assert SECRET not in refused.stderr
    only_address = headrace(evil.parent, "resume", "evil.run", "--allow", server.url)
    assert only_address.returncode == 1
    assert server.calls == before
    advised = shlex.split(refused.stderr.rpartition("If you trust it: ")[2])
    ended = headrace(evil.parent, *advised[advised.index("resume") :], "--no-cache")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert server.calls == before + 3
    assert server.last.headers["authorization"] == f"Bearer {SECRET}"


def test_at_a_terminal_a_file_from_elsewhere_is_shown_and_asked_for(evil: Path, server: HostileServer):
    before = server.calls
    no = in_terminal("resume", "evil.run", cwd=evil.parent, typed="n\n")
    assert no.returncode == 1
    assert f"at {server.url}, with the value of {VARIABLE}" in no.text.replace("\n", "")
    assert "Run it? [y/N]" in no.text
    assert "\x1b[31m" not in no.raw
    unnamed = in_terminal("resume", "evil.run", cwd=evil.parent, typed="y\ny\n")
    assert unnamed.returncode == 1
    assert f"To send the value of {VARIABLE} to {server.url}, type its name" in unnamed.text
    assert server.calls == before
    yes = in_terminal("resume", "evil.run", "--no-cache", cwd=evil.parent, typed=f"y\n{VARIABLE}\nn\n")
    assert (yes.returncode, server.calls) == (0, before + 3), yes.text
    assert "Let it use memory 95%" in yes.text
    again = in_terminal("resume", "evil.run", cwd=evil.parent, typed="n\n")
    assert again.returncode == 0
    assert "Run it?" not in again.text


def test_a_file_s_name_neither_hides_the_question_nor_writes_one(evil: Path, server: HostileServer):
    before, name = server.calls, "a\x1b[8m\nRun it? y\n.run"
    evil.rename(evil.with_name(name))
    no = in_terminal("resume", name, cwd=evil.parent, typed="n\n", columns=200)
    assert (no.returncode, server.calls) == (1, before)
    assert "\x1b[8m" not in no.raw
    assert r"$'a\x1b[8m\x0aRun it? y\x0a.run' was not run here before" in no.text
    assert sum(line.startswith("Run it?") for line in no.lines) == 1
    refused = headrace(evil.parent, "resume", name)
    assert (refused.returncode, "\x1b" in refused.stderr) == (1, False)
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("is_in_file", [False, True])
def test_what_this_user_ran_is_resumed_without_a_question(
    server: HostileServer, tmp_path: Path, forks: Forks, is_in_file: bool
):
    (tmp_path / "s.yaml").write_text("questions:\n  - {kind: free_text, name: q, text: 'Well?'}\n")
    (tmp_path / "endpoints.txt").write_text(f"{server.url}\n")
    model = f"m,service_name=openai_compatible,base_url={'@endpoints.txt' if is_in_file else server.url}"
    ran = headrace(tmp_path, "run", "s.yaml", "--model", model, "-o", "a.run", "--n", "4", "--limit", "1")
    assert ran.returncode == 0, ran.stderr
    resumed = headrace(tmp_path, "resume", "a.run", "--limit", "2", "--memory", "90%")
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert in_terminal("resume", "a.run", cwd=tmp_path).returncode == 0
    assert kept_budgets(tmp_path / "a.run").budgets.memory == "90%"
    assert json.loads(headrace(tmp_path, "status", "a.run", "--json").stdout)["interviews"] == 4


def test_limits_that_a_file_has_lifted_are_asked_for_and_given_by_the_advised_command(
    server: HostileServer, tmp_path: Path, forks: Forks
):
    path = tmp_path / "a.run"
    job = a_job(server)
    job.run(path, limit=1, max_tokens_total=900).close()
    with sqlite3.connect(path) as raw:
        raw.execute("DELETE FROM meta WHERE key = 'budget.max_tokens_total'")
    raw.close()
    fitted(path)
    before = server.calls
    refused = headrace(tmp_path, "resume", "a.run", "--allow", server.url)
    assert (refused.returncode, server.calls) == (1, before)
    advised = shlex.split(refused.stderr.rpartition("If you trust it: ")[2])
    assert advised[advised.index("resume") :] == ["resume", "a.run", "--max-tokens-total", "none"]
    before_and_now = "looser than you confirmed here: no limit of tokens where you confirmed at most 900 tokens"
    assert before_and_now in " ".join(refused.stderr.split())
    assert "was not run here before" not in refused.stderr
    no = in_terminal("resume", "a.run", "--allow", server.url, cwd=tmp_path, typed="n\n")
    assert no.returncode == 1
    assert before_and_now in no.text
    assert "A yes confirms the looser limits for this job, also for later runs." in no.text
    assert server.calls == before
    yes = in_terminal("resume", "a.run", "--limit", "2", "--no-cache", cwd=tmp_path, typed="y\n")
    assert (yes.returncode, server.calls) == (0, before + 1), yes.text
    assert "budgets: none" in yes.text
    assert before_and_now in yes.text
    assert "was not run here before" not in yes.text
    job.run(path, cache=False)  # confirmed by that yes
    assert server.calls == before + 3


def test_interviews_that_failed_and_are_asked_again_are_counted_as_left(
    server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: None
):
    path = tmp_path / "a.run"
    with monkeypatch.context() as there:
        there.setenv("HEADRACE_HOME", str(tmp_path / "elsewhere"))
        picture = FileStore(png(tmp_path / "a.png"))
        Path(picture.path).unlink()
        asked = Survey([QuestionFreeText(question_name="q", question_text="{{ scenario.p }} {{ agent.n }}?")])
        model = Model("m", base_url=server.url, service_name="openai_compatible")
        asked.by(AgentList.from_list("n", range(3))).by(Scenario({"p": picture})).by(model).run(path).close()
    refused = headrace(tmp_path, "resume", "a.run")
    assert "up to 3 calls left" in refused.stderr
