"""One question of EDSL's: its settings in ours. A kind that is not here, and code, are errors; a setting is noted.

Does not cover: what settings mean (survey.questions), or rules (survey_reading).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from headrace.edsl_files.carried_over import CarriedOver
from headrace.errors import EdslFileError, HeadraceError
from headrace.survey.questions import Question, question_from_dict
from headrace.survey.questions.base import kinds_for_files

# What EDSL stores of functions: their source, and in old files a pickle.
CODE_SETTINGS = frozenset({"function_source_code", "func", "function", "pickled_function", "source_code"})
# Settings that EDSL computes anew, or whose usual value says nothing.
_COMPUTED = frozenset({"edsl_version", "edsl_class_name", "question_type", "function_name"})
_NOT_CARRIED = {
    "enumeration": "how options are numbered",
    "probabilistic_response": "drawing the answer from probabilities that the model gives",
    "thinking_model": "a second model that thinks first",
    "thinking_system_prompt": "a second model that thinks first",
    "weight": "a weight of the answer",
    "model_instructions": "instructions for single models",
    "interpret": "an interpretation of the answer",
}
_CODED = "numeric_starts_with_0"  # what `use_code` says too
Unsupported: TypeAlias = Callable[[Mapping[str, Any], str, CarriedOver], Question]


def question_of(settings: Mapping[str, Any], notes: CarriedOver, unsupported: Unsupported) -> Question:
    """The question that these settings describe."""
    kind, name = settings.get("question_type"), str(settings.get("question_name"))[:60]
    if kind == "functional" or CODE_SETTINGS & settings.keys():
        return unsupported(settings, f"question {name!r} carries Python code, which is never executed", notes)
    made = next((each for each in kinds_for_files() if each.kind == kind), None)
    if made is None:
        return unsupported(settings, f"question {name!r} is of the kind {str(kind)[:60]!r}, which is not here", notes)
    known = {field.name for field in dataclasses.fields(made)} - {"model"}
    for setting, value in settings.items():
        if setting == "enumeration" and (value == "none" or (value == _CODED and settings.get("use_code"))):
            continue
        if setting not in known and setting not in _COMPUTED and value is not None:
            notes.note(f"question {name!r}: {setting[:60]} ({_NOT_CARRIED.get(setting, 'not known here')})")
    kept = {each: value for each, value in settings.items() if each in known and value is not None}
    try:
        return question_from_dict({"kind": kind, **kept})
    except HeadraceError as error:
        return unsupported(settings, f"question {name!r} cannot be asked here: {error.message.rstrip('.')}", notes)


def refuse_unsupported(settings: Mapping[str, Any], why: str, notes: CarriedOver) -> NoReturn:
    """Refuse a survey with a question that cannot be asked here."""
    code = settings.get("function_name")
    named = f" (the function {str(code)[:60]!r})" if code else ""
    raise EdslFileError(
        f"{notes.place}: {why}{named}.",
        fix="Leave the question out in EDSL and save it again, or write the survey in the program.",
    )
