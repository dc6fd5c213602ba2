"""A question whose answer is a Markdown text."""

from edsl import Model, QuestionMarkdown

q = QuestionMarkdown(question_name="page", question_text="Write a short page about tea.")
results = q.by(Model("test", canned_response="# Tea\n\n- green\n- black")).run()

value = results.select("page").to_list()
