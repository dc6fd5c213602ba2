import pytest

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
