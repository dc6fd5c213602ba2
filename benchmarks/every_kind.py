"""One question of every kind that a model answers, written once for Headrace and EDSL: `api` is either module."""

from typing import Any


def questions(api: Any) -> list[Any]:
    """By the names that both know; a model of 135 million parameters can understand each."""
    colors, fruits = ["red", "green", "blue"], ["apple", "pear", "plum", "grape"]
    return [
        api.QuestionFreeText(question_name="free_text", question_text="What do you like about your work?"),
        api.QuestionMarkdown(question_name="markdown", question_text="Describe your day in a few lines."),
        api.QuestionMultipleChoice(
            question_name="multiple_choice", question_text="Which color do you like best?", question_options=colors
        ),
        api.QuestionMultipleChoiceWithOther(
            question_name="multiple_choice_with_other",
            question_text="Which color do you like best?",
            question_options=colors,
        ),
        api.QuestionYesNo(question_name="yes_no", question_text="Do you like rain?"),
        api.QuestionLikertFive(question_name="likert_five", question_text="Rain is pleasant."),
        api.QuestionLinearScale(
            question_name="linear_scale",
            question_text="How happy are you?",
            question_options=[1, 2, 3, 4, 5],
            option_labels={1: "not at all", 5: "very"},
        ),
        api.QuestionCheckBox(
            question_name="checkbox", question_text="Which fruits do you eat?", question_options=fruits
        ),
        api.QuestionCheckBoxWithOther(
            question_name="checkbox_with_other", question_text="Which fruits do you eat?", question_options=fruits
        ),
        api.QuestionNumerical(
            question_name="numerical",
            question_text="How many hours do you sleep each night?",
            min_value=0,
            max_value=24,
        ),
        api.QuestionList(question_name="list", question_text="Which three animals do you like?", max_list_items=3),
        api.QuestionRank(
            question_name="rank", question_text="Rank these fruits, the best one first.", question_options=fruits
        ),
        api.QuestionTopK(
            question_name="top_k",
            question_text="Which two fruits do you like best?",
            question_options=fruits,
            min_selections=2,
            max_selections=2,
        ),
        api.QuestionDropdown(
            question_name="dropdown", question_text="Which fruit do you like best?", question_options=fruits
        ),
        api.QuestionBudget(
            question_name="budget",
            question_text="How would you spend 100 dollars?",
            question_options=["food", "rent", "fun"],
            budget_sum=100,
        ),
        api.QuestionMatrix(
            question_name="matrix",
            question_text="How do you like these?",
            question_items=["tea", "coffee"],
            question_options=["not at all", "a little", "very much"],
        ),
        api.QuestionDict(
            question_name="dict",
            question_text="Describe a friend.",
            answer_keys=["name", "age"],
            value_types=["str", "int"],
        ),
        api.QuestionExtract(
            question_name="extract",
            question_text="My name is Ada, I am 36 and I live in London.",
            answer_template={"name": "John Doe", "city": "Paris"},
        ),
        api.QuestionPydantic(question_name="pydantic", question_text="Describe a friend.", pydantic_model=_friend()),
        api.QuestionDemand(
            question_name="demand",
            question_text="How many cups of coffee would you buy a week?",
            prices=[1.0, 2.0, 4.0],
        ),
    ]


def _friend() -> Any:
    from pydantic import BaseModel, create_model

    return create_model("Friend", __base__=BaseModel, name=(str, ...), age=(int, ...))
