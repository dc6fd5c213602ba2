"""Tables in the forms that are asked for."""

import contextlib
import io

from edsl import AgentList, Model, QuestionFreeText


def printed(show):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        shown = show()
    return text.getvalue() + ("" if shown is None else str(shown))


q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="splendid")).run()
table = results.select("agent.age", "answer.q")

value = [
    "splendid" in printed(table.print),
    "splendid" in printed(lambda: table.print(format="rich")),
    "splendid" in printed(lambda: table.print(format="markdown")),
    "Mood" in printed(lambda: table.print(pretty_labels={"answer.q": "Mood"})),
]
