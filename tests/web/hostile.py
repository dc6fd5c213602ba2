"""A run file whose names, traits, fields and answers are written by somebody who wants them to be more than text."""

from pathlib import Path

from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.questions.choice import QuestionMultipleChoice
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.scenario import Scenario
from headrace.survey.survey import Survey
from tests.results import files

SCRIPTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</td></tr></table><script src=//evil.example/x.js></script>",
    "javascript:alert(1)",
    "{{ 7*7 }}{% raw %}",
    "<svg/onload=alert(1)>",
    "</textarea><style>*{display:none}</style>",
    '=HYPERLINK("http://evil.example")',
    "\x1b[2J\u202e%00",
)
# What must be in no page: tags and attributes that are not the page's own.
LIVE = ("<script>alert", "<img", "<svg/onload", "<style", "onerror=alert(1)>", "src=//evil", "</table><script")


def hostile_run(path: Path) -> Path:
    """An interview for each hostile text, which is its agent's name, its trait and its answer, with two models."""
    asked = Survey(
        [
            QuestionFreeText(question_name="said", question_text="What of {{ scenario.thing }}?"),
            QuestionMultipleChoice(question_name="mood", question_text="How?", question_options=["good", "bad"]),
        ]
    )
    agents = [Agent(name=text, traits={"trait": text, SCRIPTS[0]: 1}) for text in SCRIPTS]
    models = [Model("test", canned_response="x"), Model("test", canned_response=SCRIPTS[0])]
    of = files.job(asked, agents, [Scenario({"thing": SCRIPTS[0], SCRIPTS[1]: SCRIPTS[2]})], models)
    return files.write(path, of, lambda n: [files.MISSING if n == 5 else SCRIPTS[n // 2], "good"])


def assert_only_text(html: str) -> None:
    for live in LIVE:
        assert live not in html, live
    assert " style=" not in html
