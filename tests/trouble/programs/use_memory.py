"""Runs a job of some size and tells the most memory it ever had: HOW PATH SIZE, HOW being a function below."""

import sys
from pathlib import Path

from headrace import Agent, AgentList, Job, Model, QuestionFreeText, Results, ScenarioList, Survey
from tests.trouble.programs.letters import letters_job, right_letters
from tests.trouble.programs.telling import outcome_of, peak_bytes, resident_bytes, tell


def three_questions(path: Path, count: int) -> None:
    traits = ("age", "town", "trade", "income", "party")
    agents = AgentList(Agent({trait: f"{trait} {number}" for trait in traits}) for number in range(count))
    job = _survey("agent.age").by(agents).by(Model("test", canned_response="It is as it is."))
    _run(job, path, len(job))


def rows_of_a_file(path: Path, count: int) -> None:
    """All rows go into the run file; few of them are asked about."""
    rows = path.with_suffix(".csv")
    with rows.open("w") as file:
        file.write("number,text\n")
        file.writelines(f"{number},a row with some text in it {number}\n" for number in range(count))
    job = _survey("scenario.number").by(ScenarioList.from_csv(rows)).by(Model("test", canned_response="Yes."))
    _run(job, path, 500)


def large_answers(path: Path, count: int) -> None:
    """Many at once, each answer a megabyte, in 48 MB."""
    chars = 1_000_000
    job = letters_job(count, chars=chars, latency_s=0.02)
    budget_bytes = resident_bytes() + 48_000_000
    ended = outcome_of(lambda: job.run(path, memory="+48MB", concurrency=200).close())
    tell(**ended, peak_bytes=peak_bytes(), budget_bytes=budget_bytes, count=right_letters(path, chars))


def read_large_answers(path: Path, count: int) -> None:
    """What reading takes, beyond what the process had when it began."""
    with Results.open(path) as results:
        before = peak_bytes()
        assert sum(len(result.answer["letter"]) for result in results) == count * 1_000_000
    tell(error=None, grown_bytes=peak_bytes() - before)


def _survey(field: str) -> Survey:
    return Survey(
        QuestionFreeText(question_name=name, question_text=f"What of {name}, {{{{ {field} }}}}?") for name in "abc"
    )


def _run(job: Job, path: Path, limit: int) -> None:
    ended = outcome_of(lambda: job.run(path, limit=limit).close())
    tell(**ended, peak_bytes=peak_bytes())


globals()[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
