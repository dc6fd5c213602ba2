"""A question's settings are its attributes."""

from edsl import QuestionCheckBox, QuestionList, QuestionNumerical

age = QuestionNumerical(question_name="age", question_text="How old are you?", min_value=1, max_value=99)
foods = QuestionList(question_name="foods", question_text="Which foods?", max_list_items=3)
drinks = QuestionCheckBox(
    question_name="drinks", question_text="Which drinks?", question_options=["tea", "milk"], min_selections=1
)

value = [
    [age.question_name, age.question_text, age.question_type, age.min_value, age.max_value],
    [foods.question_type, foods.max_list_items],
    [drinks.question_type, drinks.question_options, drinks.min_selections, drinks.max_selections],
]
