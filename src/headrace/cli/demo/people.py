"""The people of `headrace demo --people`: who they are, what they are asked, and the local model that answers.

Covers: the job. Does not cover: running it and showing what came of it (cli.demo.demo_run).
"""

from __future__ import annotations

from headrace.cli.demo.subject import Subject
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ScenarioList
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.questions.choice import QuestionLinearScale, QuestionMultipleChoice
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.survey import Survey

_PEOPLE = (
    ("Ada", 34, "nurse", "Oslo"),
    ("Bruno", 58, "baker", "Lisbon"),
    ("Chioma", 27, "software developer", "Lagos"),
    ("Dmitri", 45, "bus driver", "Riga"),
    ("Elif", 19, "student", "Izmir"),
    ("Farid", 62, "retired teacher", "Tunis"),
    ("Grace", 39, "farmer", "Nakuru"),
    ("Hiro", 31, "cook", "Osaka"),
    ("Ines", 51, "judge", "Porto"),
    ("Jonas", 23, "bicycle courier", "Berlin"),
    ("Kamala", 47, "shop owner", "Pune"),
    ("Liam", 36, "fisherman", "Galway"),
    ("Mei", 29, "architect", "Taipei"),
    ("Nils", 70, "retired sailor", "Bergen"),
    ("Olga", 42, "accountant", "Krakow"),
)
_PRODUCTS = ("an electric bicycle", "a robot vacuum cleaner", "an e-book reader", "a bread machine")
_CHOICES = ("Yes", "Maybe", "Never")
_LONGEST_ANSWER_TOKENS = 80  # most end by themselves after 20 or 30
# Each token takes about 7 ms to read and 14 ms to write on two cores: what is asked of so many is short.
_INSTRUCTION = "Answer as this person."


def people() -> Subject:
    return Subject(
        file_name="people.run",
        opening="Asking a model on this machine for {size:,} interviews with 15 people ...",
        job=lambda _: people_job(),
        columns={
            "name": "agent.agent_name",
            "product": "scenario.product",
            "buy": "answer.buy",
            "why": "answer.why",
            "useful": "answer.useful",
            "job": "agent.job",
            "city": "agent.city",
            "age": "agent.age",
        },
        right=("useful", "age"),
        heading="Would they buy it?",
        question="buy",
        group="scenario.product",
        styles=dict(zip(_CHOICES, ("green", "yellow", "red"), strict=True)),
        where="answer.useful > 2",
        query="select buy, avg(useful) from self group by buy",
    )


def people_job() -> Job:
    """15 people x 4 products: 60 interviews of two or three short questions."""
    survey = Survey(
        [
            QuestionMultipleChoice(
                question_name="buy",
                question_text="Would you buy {{ scenario.product }}?",
                question_options=_CHOICES,
                include_comment=False,
            ),
            QuestionLinearScale(
                question_name="useful",
                question_text="How useful is {{ scenario.product }} to you?",
                question_options=[1, 2, 3],
                option_labels={1: "little", 3: "very"},
                include_comment=False,
            ),
            QuestionFreeText(
                question_name="why",
                question_text="Why do you want {{ scenario.product }}? One short sentence.",
            ),
        ]
    ).add_skip_rule("why", "{{ buy.answer }} != 'Yes' or {{ useful.answer }} < 2")
    people = AgentList(
        Agent({"age": age, "job": job, "city": city}, name=name, instruction=_INSTRUCTION)
        for name, age, job, city in _PEOPLE
    )
    products = ScenarioList.from_list("product", list(_PRODUCTS))
    # `prompt_cache` reads a person once for several questions, which saves more than a third of the time.
    model = Model("local", temperature=0.8, max_tokens=_LONGEST_ANSWER_TOKENS, context=512, prompt_cache=True)
    return survey.by(people, products, model)
