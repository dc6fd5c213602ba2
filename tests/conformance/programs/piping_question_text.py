"""An earlier question's text and comment in a later one."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

a = QuestionYesNo(question_name="tea", question_text="Do you like tea?")
b = QuestionFreeText(
    question_name="more", question_text="To '{{ tea.question_text }}' you said: {{ tea.comment }} Tell me more."
)
results = Survey([a, b]).by(Model("test", canned_response={"tea": "Yes\nIt is warm.", "more": "x"})).run()
prompt = str(results.select("prompt.more_user_prompt").to_list()[0])

value = ["To 'Do you like tea?' you said: It is warm. Tell me more." in prompt]
