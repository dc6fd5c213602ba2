import pytest

from headrace.survey.repair.marked_lines import lines_in


@pytest.mark.parametrize(
    ("text", "items", "comment"),
    [
        ("- red\n- green", ["red", "green"], None),
        ("Here they are:\n\n1. red\n2. green\n", ["red", "green"], None),
        ("* red\n\n* green", ["red", "green"], None),
        ('- "red"\n- "dark green"', ["red", "dark green"], None),
        ("1) red\n2) green\n\nThese are calm.\nVery.", ["red", "green"], "These are calm.\nVery."),
    ],
)
def test_marked_lines_are_a_list(text: str, items: list[str], comment: str | None):
    assert lines_in(text) == (items, comment)


@pytest.mark.parametrize(
    "text", ["", "red, green", "red\ngreen", "- red\n  - dark", "- red\nor so", "- red\n\nand\n- green"]
)
def test_other_lines_are_no_list(text: str):
    assert lines_in(text) is None
