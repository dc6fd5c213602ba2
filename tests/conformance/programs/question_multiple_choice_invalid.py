"""An answer that is no option is no answer; the run goes on."""

from edsl import Model, QuestionFreeText, QuestionMultipleChoice, Survey

color = QuestionMultipleChoice(
    question_name="color", question_text="Which color do you like best?", question_options=["Red", "Green"]
)
why = QuestionFreeText(question_name="why", question_text="Why?")
results = Survey([color, why]).by(Model("test", canned_response={"color": "Seventeen", "why": "So"})).run()

value = results.select("color", "why").to_list()
