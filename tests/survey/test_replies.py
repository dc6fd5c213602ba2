import dataclasses

import pytest

from headrace import QuestionFreeText, QuestionMultipleChoice
from headrace.survey.replies import NoAnswer, read_reply


@pytest.mark.parametrize(
    ("text", "given", "comment"),
    [
        ("Good", "Good", None),
        (' {"answer": "Good", "comment": "so"} ', "Good", "so"),
        ('{"answer": 7, "why": "because"}', 7, None),
        ('```json\n{"answer": "Good"}\n```', "Good", None),
        ('```\n{"answer": ["a", "b"]}\n```', ["a", "b"], None),
        ('Sure! Here is the JSON:\n{"answer": "Good", "comment": "so"}\nI hope this helps.', "Good", "so"),
        ('Sure:\n```json\n{"answer": {"a": "}"}}\n```', {"a": "}"}, None),
        ('I weigh {this} and {that}. {"answer": 3}', 3, None),
        ('<think>Is it {"answer": "Bad"}? No.</think>\n{"answer": "Good"}', "Good", None),
        ("<think>hm</think>\n\nGood", "Good", None),
        ('```json\n{"name": "Ada"}\n```', '{"name": "Ada"}', None),
        ('{"name": "Ada"}', '{"name": "Ada"}', None),
    ],
)
def test_an_answer_is_found_in_what_small_models_wrap_around_it(text, given, comment):
    assert read_reply(text) == (given, comment)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nd = {}\n```",
        "```\nplain\n```",
        "A dict {} and a set {1}",
        'Write {"answer": 1, "points": 2} into the form.',
        '{"answer": "Goo',
        '{"answer":' * 5000,
        "<think>never ended",
        "{" * 100_000,
    ],
)
def test_all_other_text_stays_as_it_is(text):
    assert read_reply(text) == (text, None)


@pytest.mark.parametrize("text", ["", " \n", '{"answer": null}', '{"answer": ""}', "<think>hm</think>"])
def test_nothing_is_no_answer(text):
    with pytest.raises(NoAnswer):
        read_reply(text)


mood = QuestionMultipleChoice(question_name="q", question_text="Well?", question_options=["Good", "Bad"])


@pytest.mark.parametrize(
    ("text", "given", "comment"),
    [
        ("Good", "Good", None),
        ("Good\nThe sun shines.\nOr so it seems.", "Good", "The sun shines.\nOr so it seems."),
        ("Good\n\nThe bad weather is over.", "Good", "The bad weather is over."),
        ("Good\nComment: the sun shines", "Good", "the sun shines"),
        ("Good\n**Explanation:** the sun shines", "Good", "the sun shines"),
        ("```\nGood\n```\nThe sun shines.", "Good", "The sun shines."),
        ('{"answer": "Good", "comment": "so",}', "Good", "so"),
        ("{'answer': 'Good'}\nThe sun shines.", "Good", "The sun shines."),
        ('{"answer": "Good", "comment": "so"}', "Good", "so"),
        ("Great\nThe sun shines.", "Great\nThe sun shines.", None),
    ],
)
def test_a_comment_is_what_follows_the_answer(text, given, comment):
    assert mood.read(text) == (given, comment)


def test_free_text_is_whole():
    question = QuestionFreeText(question_name="q", question_text="Well?")
    assert question.read("Good\nComment: it is.") == ("Good\nComment: it is.", None)


def test_a_comment_is_asked_for_unless_it_is_not_wanted():
    assert "comment" in mood.closing()
    assert "comment" not in dataclasses.replace(mood, include_comment=False).closing()
    assert "comment" not in QuestionFreeText(question_name="q", question_text="Well?").closing()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"answer": "Good", "comment": "The sun', ("Good", "The sun")),
        ("Good\nThe sun", ("Good", "The sun")),
        ('{"answer": "Goo', None),
        ('{"answer": 1', None),
        ('{"answer": ["a", "b"]', None),
        ("Good", None),
        ("", None),
    ],
)
def test_only_a_comment_may_be_cut_off(text, read):
    assert mood.read_cut(text) == read
    assert QuestionFreeText(question_name="q", question_text="Well?").read_cut(text) is None
