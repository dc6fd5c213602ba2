"""Headrace runs LLM jobs of any size in a fixed amount of memory. See README.md and ARCHITECTURE.md.

The names are loaded when they are first used: a command that only prints its help should not wait for SQLite.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.agents.engine.engine import Engine
    from headrace.agents.task import task
    from headrace.errors import HeadraceError, HeadraceWarning
    from headrace.plan.job import Job, Jobs
    from headrace.plan.lists import AgentList, ModelList, ScenarioList
    from headrace.priority import Priority
    from headrace.ray_option import Ray
    from headrace.results.result import Result
    from headrace.results.results import Results
    from headrace.stand_ins import Cache, Coop, Dataset, Notebook
    from headrace.survey.agent import Agent
    from headrace.survey.files.file_store import FileStore
    from headrace.survey.flow.rules import EndOfSurvey
    from headrace.survey.model import Model
    from headrace.survey.questions.base import Question
    from headrace.survey.questions.checkbox import (
        QuestionCheckBox,
        QuestionCheckBoxWithOther,
        QuestionRank,
        QuestionTopK,
    )
    from headrace.survey.questions.choice import (
        QuestionLikertFive,
        QuestionLinearScale,
        QuestionMultipleChoice,
        QuestionMultipleChoiceWithOther,
        QuestionYesNo,
    )
    from headrace.survey.questions.computed import QuestionCompute, QuestionFunctional, QuestionRandom
    from headrace.survey.questions.dropdown import QuestionDropdown
    from headrace.survey.questions.free_text import QuestionFreeText, QuestionMarkdown
    from headrace.survey.questions.list import QuestionList
    from headrace.survey.questions.number import QuestionBudget, QuestionDemand, QuestionNumerical
    from headrace.survey.questions.structures import QuestionDict, QuestionExtract, QuestionMatrix, QuestionPydantic
    from headrace.survey.scenario import Scenario
    from headrace.survey.survey import Survey
    from headrace.survey.wording.instruction import ChangeInstruction, Instruction

__all__ = [
    "Agent",
    "AgentList",
    "Cache",
    "ChangeInstruction",
    "Coop",
    "Dataset",
    "EndOfSurvey",
    "Engine",
    "FileStore",
    "HeadraceError",
    "HeadraceWarning",
    "Instruction",
    "Job",
    "Jobs",
    "Model",
    "ModelList",
    "Notebook",
    "Priority",
    "Question",
    "QuestionBudget",
    "QuestionCheckBox",
    "QuestionCheckBoxWithOther",
    "QuestionCompute",
    "QuestionDemand",
    "QuestionDict",
    "QuestionDropdown",
    "QuestionExtract",
    "QuestionFreeText",
    "QuestionFunctional",
    "QuestionLikertFive",
    "QuestionLinearScale",
    "QuestionList",
    "QuestionMarkdown",
    "QuestionMatrix",
    "QuestionMultipleChoice",
    "QuestionMultipleChoiceWithOther",
    "QuestionNumerical",
    "QuestionPydantic",
    "QuestionRandom",
    "QuestionRank",
    "QuestionTopK",
    "QuestionYesNo",
    "Ray",
    "Result",
    "Results",
    "Scenario",
    "ScenarioList",
    "Survey",
    "task",
]
__version__ = "0.1.0"

_HOMES = {
    "Agent": "survey.agent",
    "AgentList": "plan.lists",
    "Cache": "stand_ins",
    "ChangeInstruction": "survey.wording.instruction",
    "Coop": "stand_ins",
    "Dataset": "stand_ins",
    "EndOfSurvey": "survey.flow.rules",
    "Engine": "agents.engine.engine",
    "FileStore": "survey.files.file_store",
    "HeadraceError": "errors",
    "HeadraceWarning": "errors",
    "Instruction": "survey.wording.instruction",
    "Job": "plan.job",
    "Jobs": "plan.job",
    "Model": "survey.model",
    "ModelList": "plan.lists",
    "Notebook": "stand_ins",
    "Priority": "priority",
    "Question": "survey.questions",
    "QuestionBudget": "survey.questions.number",
    "QuestionCheckBox": "survey.questions.checkbox",
    "QuestionCheckBoxWithOther": "survey.questions.checkbox",
    "QuestionCompute": "survey.questions.computed",
    "QuestionDemand": "survey.questions.number",
    "QuestionDict": "survey.questions.structures",
    "QuestionDropdown": "survey.questions.dropdown",
    "QuestionExtract": "survey.questions.structures",
    "QuestionFreeText": "survey.questions.free_text",
    "QuestionFunctional": "survey.questions.computed",
    "QuestionLikertFive": "survey.questions.choice",
    "QuestionLinearScale": "survey.questions.choice",
    "QuestionList": "survey.questions.list",
    "QuestionMarkdown": "survey.questions.free_text",
    "QuestionMatrix": "survey.questions.structures",
    "QuestionMultipleChoice": "survey.questions.choice",
    "QuestionMultipleChoiceWithOther": "survey.questions.choice",
    "QuestionNumerical": "survey.questions.number",
    "QuestionPydantic": "survey.questions.structures",
    "QuestionRandom": "survey.questions.computed",
    "QuestionRank": "survey.questions.checkbox",
    "QuestionTopK": "survey.questions.checkbox",
    "QuestionYesNo": "survey.questions.choice",
    "Ray": "ray_option",
    "Result": "results.result",
    "Results": "results.results",
    "Scenario": "survey.scenario",
    "ScenarioList": "plan.lists",
    "Survey": "survey.survey",
    "task": "agents.task",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from headrace.missing_names import missing_import

        raise missing_import(name, _HOMES)
    found = globals()[name] = getattr(import_module(f"headrace.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
