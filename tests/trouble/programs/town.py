"""A survey about towns that has a bit of everything, and what its answers must be.

Questions that need earlier ones, one that a rule skips, answers accepted only the second time, and answers that never
are. Every call that a model answers is noted as a line in the file that CALL_LOG names.
"""

import os
from typing import Any

from headrace import (
    Agent,
    AgentList,
    Job,
    Model,
    QuestionFreeText,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionYesNo,
    ScenarioList,
    Survey,
)
from headrace.models.provider import Request

CITIES = ("Oslo", "Lima", "Århus", "São Paulo", "Ghent")
QUESTIONS = ("mood", "rating", "advice", "commutes", "minutes", "route", "fare", "worth")


def town_job(agents: int, latency_s: float) -> Job:
    survey = Survey([
        QuestionMultipleChoice(
            question_name="mood",
            question_text="You are {{ agent.age }}. How is {{ scenario.city }}?",
            question_options=["Good", "Bad", "Unsure"],
        ),
        QuestionNumerical(
            question_name="rating", question_text="You said {{ mood.answer }}. Rate it.", min_value=0, max_value=10
        ),
        QuestionFreeText(question_name="advice", question_text="You gave it {{ rating.answer }}. What would help?"),
        QuestionYesNo(question_name="commutes", question_text="Do you commute in {{ scenario.city }}?"),
        QuestionNumerical(question_name="minutes", question_text="How long does it take?", min_value=1),
        QuestionFreeText(question_name="route", question_text="It takes {{ minutes.answer }} minutes. Which way?"),
        QuestionNumerical(question_name="fare", question_text="What does {{ route.answer }} cost?"),
        QuestionYesNo(question_name="worth", question_text="Is it worth {{ fare.answer }}?"),
    ]).add_skip_rule("minutes", "{{ commutes.answer }} == 'No'")  # fmt: skip
    people = AgentList(Agent(name=f"p{number}", traits={"age": 18 + number}) for number in range(agents))
    model = Model("test", canned_response=respond, latency_s=latency_s)
    return survey.by(people).by(ScenarioList.from_list("city", CITIES)).by(model)


def respond(request: Request) -> str:
    number, city = request.agent["age"] - 18, request.scenario["city"]
    _note(f"{number * len(CITIES) + CITIES.index(city)} {request.question_name} {request.attempt}\n")
    return _reply(request.question_name, number, city, request.attempt)


def expected(ordinal: int) -> dict[str, Any]:
    """The answers that the interview at this place of the plan must end with."""
    number, city = ordinal // len(CITIES), CITIES[ordinal % len(CITIES)]
    final = {name: _reply(name, number, city, 3) for name in QUESTIONS}
    fails, commutes = final["rating"] == "lots", final["commutes"] == "Yes"
    return {
        "mood": final["mood"],
        "rating": None if fails else int(final["rating"]),
        "advice": None if fails else final["advice"],
        "commutes": final["commutes"],
        "minutes": int(final["minutes"]) if commutes else None,
        "route": final["route"],
        "fare": float(final["fare"]),
        "worth": final["worth"],
    }


def calls_of(ordinal: int) -> dict[str, int]:
    """How many calls each question of an interview takes that nothing disturbs."""
    number, answers = ordinal // len(CITIES), expected(ordinal)
    calls = dict.fromkeys(QUESTIONS, 1)
    if number % 5 == 1:
        calls["commutes"] = 2
    if answers["rating"] is None:
        calls |= {"rating": 3, "advice": 0}
    if answers["commutes"] == "No":
        calls["minutes"] = 0
    return calls


def _reply(question: str, number: int, city: str, attempt: int) -> str:
    place = number + CITIES.index(city)
    match question:
        case "mood":
            return ("Good", "Bad", "Unsure")[place % 3]
        case "rating":
            return "lots" if number % 7 == 3 else str(place % 11)
        case "advice":
            return f"More trams in {city} 🚋, says p{number}"
        case "commutes":
            if number % 5 == 1 and attempt == 1:
                return "It depends"
            return "Yes" if place % 4 else "No"
        case "minutes":
            return str(5 + place)
        case "route":
            return f"line {place}"
        case "fare":
            return f"{place}.5"
        case _:
            return "Yes" if place % 2 else "No"


def _note(line: str) -> None:
    log = os.environ.get("CALL_LOG")
    if log:
        # One write to a file opened for appending: whole lines, and none lost when the process is killed.
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line.encode())
        os.close(descriptor)
