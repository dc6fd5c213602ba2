"""A small survey whose answers differ, for files that keep less than everything."""

from collections.abc import Callable
from typing import Any

from headrace import Agent, AgentList, Job, Model, QuestionMultipleChoice, QuestionNumerical, ScenarioList, Survey
from headrace.models.provider import Request

CITIES = ["Oslo", "Lima", "Rome"]
TOTALS = {"n": "count()", "mean": "mean(answer.rating)", "most": "max(answer.rating)", "age": "sum(agent.age)"}


def rating(age: int, city: str) -> int:
    return (age * 7 + CITIES.index(city)) % 11


class Respondent:
    """Answers by age and city, counts its calls, and fails as it is told: `troubles` gives an error for a request."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, str, str]] = []
        self.troubles: Callable[[Request], BaseException | str | None] = lambda _: None

    def __call__(self, request: Request) -> Any:
        age, city = request.agent["age"], request.scenario["city"]
        self.calls.append((age, city, request.question_name))
        trouble = self.troubles(request)
        if isinstance(trouble, BaseException):
            raise trouble
        if trouble is not None:
            return trouble
        return "Good" if request.question_name == "mood" else str(rating(age, city))


def kept_job(respondent: Any, agents: int = 10) -> Job:
    mood = QuestionMultipleChoice(
        question_name="mood", question_text="How is {{ scenario.city }}?", question_options=["Good", "Bad"]
    )
    rate = QuestionNumerical(
        question_name="rating", question_text="It is {{ mood.answer }}. Rate it.", min_value=0, max_value=10
    )
    people = AgentList(Agent({"age": 20 + number}, name=f"p{number}") for number in range(agents))
    return (
        Survey([mood, rate])
        .by(people, ScenarioList.from_list("city", CITIES))
        .by(Model("test", canned_response=respondent))
    )


def expected(agents: int = 10, skip: Callable[[int, str], bool] = lambda _age, _city: False) -> list[dict[str, Any]]:
    """The totals by city that TOTALS give of those that are not skipped, as `to_dicts` has them."""
    rows: list[dict[str, Any]] = []
    for city in sorted(CITIES):
        ages = [20 + number for number in range(agents) if not skip(20 + number, city)]
        ratings = [rating(age, city) for age in ages]
        if ages:
            mean = sum(ratings) / len(ratings)
            rows.append({"city": city, "n": len(ages), "mean": mean, "most": max(ratings), "age": sum(ages)})
    return rows
