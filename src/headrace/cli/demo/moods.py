"""The demo's survey, and what its test model answers. Does not cover: running and showing it (cli.demo.demo_run)."""

from __future__ import annotations

import hashlib

from headrace.cli.demo.subject import Subject
from headrace.models.provider import Request
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ScenarioList
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.questions.choice import QuestionMultipleChoice
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.questions.number import QuestionNumerical
from headrace.survey.survey import Survey

MOODS = ("Good", "Mixed", "Bad")
# Of 256 people, how many like a city, and how many do not dislike it.
_LIKES = {"Oslo": (120, 180), "Lima": (150, 225), "Kyoto": (200, 235)}
_JOBS = ("baker", "nurse", "teacher", "sailor", "clerk")
_WHY = {
    "Good": ("The light.", "My neighbours.", "There is work.", "The food."),
    "Bad": ("The rent.", "Too loud.", "The winters.", "No buses."),
}
_RATINGS = {"Good": 8, "Mixed": 5, "Bad": 2}


def demo_job(size: int) -> Job:
    """A job of `size` interviews: everyone is asked about every city, so the number of cities divides it."""
    cities = tuple(_LIKES)[: next(count for count in (3, 2, 1) if size % count == 0)]
    people = (
        Agent({"age": 20 + number * 7 % 60, "job": _JOBS[number % len(_JOBS)]}, name=f"p{number}")
        for number in range(size // len(cities))
    )
    return _survey().by(
        AgentList(people), ScenarioList.from_list("city", cities), Model("test", canned_response=answer)
    )


def answer(request: Request) -> str | int:
    """What the test model says: the same in every run, and different from person to person."""
    city = request.scenario["city"]
    person = f"{request.agent['agent_name']} {city}"
    chance = int.from_bytes(hashlib.blake2b(person.encode(), digest_size=3).digest())
    likes, bears = _LIKES[city]
    mood = MOODS[(chance & 255 >= likes) + (chance & 255 >= bears)]
    match request.question_name:
        case "mood":
            return mood
        case "rating":
            return _RATINGS[mood] + (chance >> 8) % 3 - 1
        case _:
            return _WHY[mood][(chance >> 16) % 4]


def moods() -> Subject:
    return Subject(
        file_name="demo.run",
        opening="Asking {size:,} interviews of 3 questions ...",
        job=demo_job,
        columns={
            "name": "agent.agent_name",
            "city": "scenario.city",
            "mood": "answer.mood",
            "rating": "answer.rating",
            "why": "answer.why",
            "job": "agent.job",
            "age": "agent.age",
        },
        right=("rating", "age"),
        heading="How do they feel about living there?",
        question="mood",
        group="scenario.city",
        styles=dict(zip(MOODS, ("green", "yellow", "red"), strict=True)),
        where="answer.rating > 7",
        query="select mood, avg(rating) from self group by mood",
    )


def _survey() -> Survey:
    return Survey(
        [
            QuestionMultipleChoice(
                question_name="mood",
                question_text="How do you feel about living in {{ scenario.city }}?",
                question_options=MOODS,
                include_comment=False,
            ),
            QuestionNumerical(
                question_name="rating",
                question_text="You said {{ mood.answer }}. Rate {{ scenario.city }}.",
                min_value=0,
                max_value=10,
                include_comment=False,
            ),
            QuestionFreeText(question_name="why", question_text="Why, as a {{ agent.job }} of {{ agent.age }}?"),
        ]
    ).add_skip_rule("why", "{{ mood.answer }} == 'Mixed'")
