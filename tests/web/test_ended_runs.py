"""Runs that no process runs and that are not complete: the page says why, and how to go on."""

import html
import re
import shlex
from pathlib import Path

import pytest

from headrace import Agent, Model, QuestionFreeText, QuestionFunctional, Results, Survey
from headrace.errors import BudgetSpent
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import StopNowRequest
from headrace.interviews.steering.needed_functions import needed_functions
from headrace.interviews.steering.run_file_status import RunFileStatus
from headrace.units import format_dollars
from tests.cli.live import SURVEY, endless, live
from tests.web.running_page import RunningPage

pytestmark = pytest.mark.usefixtures("forks")

_QUESTION = QuestionFreeText(question_name="q", question_text="Well?")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SURVEY)
    return tmp_path


def overview(path: Path, more: str = "") -> str:
    with RunningPage(path) as page:
        body = page.get(f"/runs/{page.api('/runs')['files'][0]['id']}{more}").body
    return html.unescape(body)


def typed(place: Path, *words: str) -> tuple[int, str, str]:
    with live(place, *words) as run:
        return run.ended()


def commands(body: str) -> list[str]:
    return re.findall(r'<pre class="command">(.*?)</pre>', body)


def test_a_killed_run_and_a_stopped_one_can_be_gone_on_with_by_the_command_that_is_shown(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run", interviews=1_000)) as run:
        run.state_once(path)
        run.kill()
    assert "It was killed" in overview(path)
    with live(place, "resume", "a.run") as run:
        run.state_once(path, done=5)
        ask(path, StopNowRequest())
        run.ended()
    shown = overview(path)
    assert "It was stopped." in shown
    pausing = overview(path, "/steer/pause")
    assert "No process runs this file now" in pausing
    assert "headrace pause" not in pausing
    assert commands(shown) == commands(pausing) == [f"headrace resume {path}"]
    assert typed(place, *shlex.split(commands(shown)[0])[1:], "--concurrency", "300")[0] == 0
    assert RunFileStatus.at(path).state == "complete"
    assert (commands(overview(path)), "complete" in overview(path, "/steer/pause")) == ([], True)


def test_a_spent_budget_is_told_with_the_larger_one_that_lets_the_run_go_on(place: Path):
    path = place / "a.run"
    model = Model("test", price={"input": 10.0, "output": 10.0})
    job = _QUESTION.by([Agent(traits={"n": n}) for n in range(50)]).by(model)
    with pytest.raises(BudgetSpent):
        job.run(path, max_cost=0.004, concurrency=2)
    shown = overview(path)
    assert "Its budget is spent." in shown
    assert commands(shown) == [f"headrace resume {path} --max-cost 0.008"]
    with Results.open(path) as results:
        paid = results.stats().cost
    assert paid
    # An amount of less than a cent is not nothing: on the overview, in its figures and in the list.
    assert shown.count(format_dollars(paid)) >= 2
    assert "$0.00<" not in shown
    with RunningPage(path) as page:
        assert page.api("/runs")["files"][0]["texts"]["cost"] == format_dollars(paid)


def test_where_a_file_needs_functions_the_program_is_named_not_a_command(place: Path):
    path = place / "a.run"

    def never(*_: object) -> str:
        return "well"

    job = _QUESTION.by(Model("test", func=never))
    job.run(path, n=4, limit=2).close()
    (named,) = needed_functions(path)
    assert named.endswith("never")
    shown = overview(path)
    assert commands(shown) == []
    assert "run the program again" in shown
    assert named in shown
    assert "part of the plan" in shown
    with RunningPage(path) as page:
        refused = page.post(f"/api/v1/runs/{page.api('/runs')['files'][0]['id']}/pause", {})
    assert (refused.status, named in refused.json()["error"]["fix"]) == (409, True)
    status = typed(place, "status", "a.run")[1]
    assert f"run the program again that made it, which has {named}" in status
    assert "resume" not in status


def test_functions_of_questions_are_needed_too(place: Path):
    path = place / "a.run"

    def doubled(_: object, answers: dict[str, object]) -> object:
        return answers["q"]

    derived = QuestionFunctional(question_name="d", func=doubled)
    Survey([_QUESTION, derived]).by(Model("test")).run(path).close()
    assert [name.rpartition(".")[2] for name in needed_functions(path)] == ["doubled"]


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.0, "$0.00"), (-1e-7, "$0.00"), (1e-9, "< $0.000001"), (1.24e-6, "$0.0000012"), (0.00073, "$0.00073"),
     (0.05, "$0.05"), (0.0999, "$0.10"), (0.734, "$0.73"), (12345.6, "$12,345.60")],
)  # fmt: skip
def test_small_amounts_have_as_many_places_as_they_need(amount: float, text: str):
    assert format_dollars(amount) == text
