"""A small survey for scenarios of kills, its run, and what must hold of its file. Each call of the model and each
result that a run confirms is noted in a file beside it, so that a check in another process knows of them.

Does not cover: the scenarios (kill_scenarios, replaced_files).
"""

import os
from pathlib import Path

from headrace import Agent, AgentList, Job, Model, QuestionFreeText, QuestionYesNo, Results, Survey
from headrace.models.provider import Request

PEOPLE = 6
_BESIDE = ("-wal", "-shm", "-journal", ".lock", ".making", ".making-journal", ".sock")


def note(log: Path, line: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def lines_of(log: Path) -> list[str]:
    return log.read_text("ascii").split() if log.exists() else []


def small_job(place: Path, people: int = PEOPLE) -> Job:
    def respond(request: Request) -> str:
        note(place / "calls", f"{request.agent['number']}:{request.question_name}")
        return "Yes" if request.question_name == "happy" else f"because of {request.agent['number']}"

    survey = Survey([
        QuestionYesNo(question_name="happy", question_text="Are you happy?"),
        QuestionFreeText(question_name="why", question_text="You said {{ happy.answer }}. Why?"),
    ])  # fmt: skip
    agents = AgentList(Agent(name=f"p{number}", traits={"number": number}) for number in range(people))
    return survey.by(agents).by(Model("test", canned_response=respond))


def run_survey(place: Path, **options: object) -> None:
    """Each result that the run confirms is noted: it must be in the file from then on."""
    people = int(str(options.pop("people", PEOPLE)))
    job, confirmed = small_job(place, people), place / "confirmed"
    job.run(
        place / "x.run",
        concurrency=2,
        on_result=lambda result: note(confirmed, str(result.ordinal)),
        **options,  # pyright: ignore[reportArgumentType]
    ).close()


def ordinals_of(path: Path) -> list[int]:
    with Results.open(path) as results:
        return [result.ordinal for result in results]


def check_run(place: Path, people: int = PEOPLE, **options: object) -> None:
    path, before = place / "x.run", len(lines_of(place / "calls"))
    stored = ordinals_of(path) if path.exists() else []
    assert set(map(int, lines_of(place / "confirmed"))) <= set(stored), "a confirmed result is lost"
    run_survey(place, people=people, **options)
    again = {int(call.partition(":")[0]) for call in lines_of(place / "calls")[before:]}
    assert not again & set(stored), f"{again & set(stored)} were journaled and asked again"
    check_complete(path, people)


def check_complete(path: Path, people: int) -> None:
    with Results.open(path) as results:
        right = [{"happy": "Yes", "why": f"because of {number}"} for number in range(people)]
        assert [result.answer for result in results] == right
    check_is_alone(path)


def check_is_alone(path: Path) -> None:
    left = [suffix for suffix in _BESIDE if path.with_name(path.name + suffix).exists()]
    assert not left, f"left beside the file: {left}"


def finish(place: Path) -> None:
    """A whole run whose notes are forgotten."""
    run_survey(place)
    (place / "calls").unlink()
    (place / "confirmed").unlink()


def left_in_wal_mode(place: Path) -> None:
    """As a run leaves its file that was killed in the middle."""
    pid = os.fork()
    if not pid:
        for count, result in enumerate(small_job(place).stream(place / "x.run", concurrency=1)):
            note(place / "confirmed", str(result.ordinal))
            if count == 2:
                os._exit(0)
    os.waitpid(pid, 0)
