"""Rules, memory and piping in one survey."""

from edsl import Model, QuestionFreeText, QuestionNumerical, QuestionYesNo, Survey

car = QuestionYesNo(question_name="car", question_text="Do you drive?")
miles = QuestionNumerical(question_name="miles", question_text="How many miles a week?")
bus = QuestionYesNo(question_name="bus", question_text="Do you take the bus?")
sum_up = QuestionFreeText(question_name="sum_up", question_text="You drive {{ miles.answer }} miles. Sum up.")
survey = (
    Survey([car, miles, bus, sum_up])
    .add_rule("car", "car == 'No'", "bus")
    .add_stop_rule("bus", "bus == 'No'")
    .set_full_memory_mode()
)
value = []
for answers in ({"car": "Yes", "bus": "Yes"}, {"car": "No", "bus": "No"}):
    model = Model("test", canned_response={"miles": "50", "sum_up": "a lot", **answers})
    results = survey.by(model).run()
    value.append(results.select("car", "miles", "bus", "sum_up").to_list())
