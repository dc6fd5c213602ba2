"""Surveys for worker processes, whose agents do what a test wants, and the processes that conduct them."""

from itertools import islice
from pathlib import Path

from headrace import Agent, AgentList, Job, Model, ModelList, QuestionFreeText, Results, Survey
from tests.interviews.workers import survey_answers


def job_of(acts: dict[int, str], people: int, *models: Model) -> Job:
    """One question of so many agents, some of whom have something to do."""
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?")])
    agents = AgentList(Agent({"n": n, "act": acts.get(n, "")}) for n in range(people))
    return asked.by(agents, ModelList(models or [Model("test", canned_response=survey_answers.act)]))


def why_failed(path: Path) -> list[str]:
    """The first failures, to be printed by a test that expected none."""
    with Results.open(path) as results:
        return [f"{failed.ordinal}: {failed.cause}: {failed.message}" for failed in islice(results.failed(), 5)]


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    try:
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []


def wardens_of(pid: int) -> list[int]:
    """Between a controller and its warden stands the standby, which cleans up after a killed warden."""
    return [warden for standby in children_of(pid) for warden in children_of(standby)]


def workers_of(pid: int) -> list[int]:
    return [worker for warden in wardens_of(pid) for worker in children_of(warden)]
