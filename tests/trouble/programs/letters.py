"""Long answers that do not compress, and how to tell whether a run file holds the right ones."""

import random
from pathlib import Path

import apsw

from headrace import Job, Model, QuestionFreeText, Results, ScenarioList, Survey
from headrace.models.provider import Request


def letters_job(count: int, *, chars: int, latency_s: float = 0.0, padding: str = "") -> Job:
    survey = Survey([
        QuestionFreeText(question_name="letter", question_text="Write letter {{ scenario.number }}"),
        QuestionFreeText(question_name="signed", question_text="Sign letter {{ scenario.number }}"),
        QuestionFreeText(question_name="sealed", question_text="{{ signed.answer }}, seal it"),
    ])  # fmt: skip
    rows = ({"number": number, "chars": chars, "padding": padding} for number in range(count))
    return survey.by(ScenarioList(rows)).by(Model("test", canned_response=write, latency_s=latency_s))


def write(request: Request) -> str:
    number = request.scenario["number"]
    if request.question_name == "letter":
        return letter(number, request.scenario["chars"])
    return f"{request.question_name} {number}"


def letter(number: int, chars: int) -> str:
    return random.Random(number).randbytes(chars // 2).hex()


def right_letters(path: Path, chars: int) -> int:
    """How many letters a run file holds, after looking at every one of them and at the file as a whole."""
    seen: set[int] = set()
    with Results.open(path) as results:
        for result in results:
            number = result.scenario["number"]
            assert result.answer == {
                "letter": letter(number, chars),
                "signed": f"signed {number}",
                "sealed": f"sealed {number}",
            }, result.failures
            assert result.raw_responses["signed"] == f"signed {number}"
            assert number not in seen
            seen.add(number)
        assert len(results) == len(seen)
    _check_integrity(path)
    return len(seen)


def _check_integrity(path: Path) -> None:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
    finally:
        connection.close()
