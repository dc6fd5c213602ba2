"""show_prompts prints them, from a survey or a job."""

import contextlib
import io

from edsl import Model, QuestionFreeText, Survey

q = QuestionFreeText(question_name="q", question_text="How is the weather in Oslo?")
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    Survey([q]).show_prompts()
    Survey([q]).by(Model("test")).show_prompts()

value = "weather" in printed.getvalue()
