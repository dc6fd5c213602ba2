"""The kinds of question, one per file. A new kind is a new file here: every module of this folder is loaded.

Does not cover: how a prompt is put together (survey.prompts) or in what order questions are asked
(interviews.interview).
"""

from __future__ import annotations

import importlib
import pkgutil

from headrace.survey.questions.base import Question, question_from_dict

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Question", "question_from_dict"]
