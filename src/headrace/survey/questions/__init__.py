"""The kinds of question, one per file. A new kind is a new file here.

A kind's module is loaded when its class is imported, or all of them when one is asked for by its name (kinds): a
program with one kind of question does not wait for the others. Does not cover: how a prompt is put together
(survey.prompts) or in what order questions are asked (interviews.interview).
"""

from __future__ import annotations

from headrace.survey.questions.base import Question, question_from_dict

__all__ = ["Question", "question_from_dict"]
