"""What the readers of lists are given beside a path: options that nobody knows are refused, never passed over."""

import pytest

from headrace import AgentList, ScenarioList
from headrace.errors import ListError


@pytest.mark.parametrize("listed", [AgentList, ScenarioList])
@pytest.mark.parametrize(
    ("reader", "given", "hint"),
    [
        ("from_excel", {"sheet_name": "two"}, "Did you mean 'sheet'?"),
        ("from_file", {"sheet_name": "two"}, "Did you mean 'sheet'?"),
        ("from_sqlite", {"tables": "u"}, "Did you mean 'table'?"),
        ("from_parquet", {"columns": ["i"]}, ""),
        ("from_arrow", {"foo": 1}, ""),
    ],
)
def test_an_unknown_option_is_refused_before_anything_is_read(listed, reader, given, hint):
    with pytest.raises(ListError, match=f"There is no option '{next(iter(given))}'") as raised:
        getattr(listed, reader)("not there", **given)
    assert hint in str(raised.value)
    assert "Agents do" not in str(raised.value)


def test_what_only_agents_have_is_said_so_for_scenarios():
    with pytest.raises(ListError, match="Agents do"):
        ScenarioList.from_excel("not there", name_field="who")
