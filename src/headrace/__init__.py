"""Headrace runs LLM jobs of any size in a fixed amount of memory. See README.md and ARCHITECTURE.md."""

from headrace.errors import HeadraceError
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.results.result import Result
from headrace.results.results import Results
from headrace.survey.agents import Agent
from headrace.survey.models import Model
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.questions.linear_scale import QuestionLinearScale
from headrace.survey.questions.multiple_choice import QuestionMultipleChoice
from headrace.survey.questions.numerical import QuestionNumerical
from headrace.survey.questions.yes_no import QuestionYesNo
from headrace.survey.scenarios import Scenario
from headrace.survey.survey import Survey

__all__ = [
    "Agent",
    "AgentList",
    "HeadraceError",
    "Job",
    "Model",
    "ModelList",
    "QuestionFreeText",
    "QuestionLinearScale",
    "QuestionMultipleChoice",
    "QuestionNumerical",
    "QuestionYesNo",
    "Result",
    "Results",
    "Scenario",
    "ScenarioList",
    "Survey",
]
__version__ = "0.1.0"
