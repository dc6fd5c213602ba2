"""The job that is measured: three questions to n agents of five traits, about one city, with a canned model.

Written once for Headrace and EDSL: they share the names, so `api` is either of the two modules.
"""

from collections.abc import Iterator
from typing import Any

ANSWERS = {"mood": "Good", "rating": "7", "why": "The harbour is a short walk away and the trams run late."}


def job(api: Any, agents: Any) -> Any:
    return survey(api).by(agents).by(api.Scenario({"city": "Oslo"})).by(model(api))


def model(api: Any) -> Any:
    return api.Model("test", canned_response=ANSWERS)


def survey(api: Any, *, has_names: bool = True) -> Any:
    """Without names in its texts it is EDSL's best case: for each text with one, it looks through all that it holds."""
    city, said, who = ("{{ scenario.city }}", "You said {{ mood.answer }}. ", "As a {{ agent.work }}, ")
    if not has_names:
        city, said, who = "Oslo", "", ""
    mood = api.QuestionMultipleChoice(
        question_name="mood",
        question_text=f"How do you feel about {city}?",
        question_options=["Good", "Bad", "Mixed"],
    )
    rating = api.QuestionNumerical(
        question_name="rating",
        question_text=f"{said}How would you rate it from 0 to 10?",
        min_value=0,
        max_value=10,
    )
    why = api.QuestionFreeText(question_name="why", question_text=f"{who}why do you think so?")
    return api.Survey([mood, rating, why])


def each_agent(api: Any, count: int) -> Iterator[Any]:
    for number in range(count):
        traits = {
            "age": 18 + number % 70,
            "work": ("nurse", "teacher", "driver", "cook")[number % 4],
            "region": f"district {number % 97}",
            "income": 20_000 + number * 37 % 90_000,
            "member": number % 3 == 0,
        }
        yield api.Agent(name=f"respondent {number}", traits=traits)
