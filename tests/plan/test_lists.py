import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, Scenario, ScenarioList, Survey
from headrace.errors import ListError
from headrace.expressions import ColumnKind
from headrace.plan.rows.spool import SPOOL_IN_RAM_BYTES, Spool

survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_text(text, encoding=encoding)
    return path


def test_an_iterator_is_consumed_once_and_read_again_and_again():
    taken: list[int] = []

    def people() -> Iterator[Agent]:
        for number in range(5):
            taken.append(number)
            yield Agent({"n": number}, name=f"p{number}")

    agents = AgentList(people())
    assert len(agents) == 5
    assert [agent.traits["n"] for agent in agents] == [agent.traits["n"] for agent in agents] == taken == list(range(5))
    assert next(iter(agents)) == Agent({"n": 0}, name="p0")


def test_two_readers_of_one_list_do_not_disturb_each_other():
    scenarios = ScenarioList({"n": number, "pad": "x" * 100} for number in range(5000))
    left, right = iter(scenarios), iter(scenarios)
    assert [next(left)["n"] for _ in range(3000)] == list(range(3000))
    assert [next(right)["n"] for _ in range(2000)] == list(range(2000))
    assert next(left)["n"] == 3000


def test_a_long_list_lies_on_disk_and_not_in_memory():
    rows = 4 * SPOOL_IN_RAM_BYTES // 1000
    tracemalloc.start()
    scenarios = ScenarioList({"n": number, "pad": "x" * 1000} for number in range(rows))
    assert sum(1 for _ in scenarios) == rows
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * SPOOL_IN_RAM_BYTES


def test_a_row_of_many_blocks_takes_time_in_proportion_to_its_size():
    sizes = [10, 40_000_000, 0, 70_000, 65_536]
    spool = Spool(({"text": "x" * size} for size in sizes), "scenario")
    began_s = time.process_time()
    read = [len(row) - len('{"text":""}') for row in spool.rows()]
    assert time.process_time() - began_s < 3  # about 0.1; joined anew with each block it took 10 and more
    assert read == sizes


@pytest.mark.parametrize("change", [{"n": 1}, {"n": 0, "more": 1}, {"m": 0}])
def test_a_changed_list_changes_the_identity(change: dict[str, Any]):
    def job(first: dict[str, Any]):
        return survey.by(ScenarioList([first, {"n": 9}]), Model("test"))

    assert job({"n": 0}).identity() == job({"n": 0}).identity()
    assert job({"n": 0}).identity() != job(change).identity()


def test_a_csv_column_of_plain_numbers_holds_numbers_and_any_other_holds_text(tmp_path: Path):
    path = written(
        tmp_path / "a.csv", 'n,zip,share,mixed,empty,quoted\n1,07030,0.5,1,,"a, b"\n-2,10001,3,x,,"line\nbreak"\n'
    )
    assert list(ScenarioList.from_csv(path)) == [
        {"n": 1, "zip": "07030", "share": 0.5, "mixed": "1", "empty": "", "quoted": "a, b"},
        {"n": -2, "zip": "10001", "share": 3.0, "mixed": "x", "empty": "", "quoted": "line\nbreak"},
    ]


def test_a_csv_with_a_byte_order_mark_and_windows_lines_is_read(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeffcity\r\nOslo\r\n\r\nMünchen 🎈\r\n".encode())
    assert list(ScenarioList.from_csv(path)) == [{"city": "Oslo"}, {"city": "München 🎈"}]


def test_agents_from_a_csv_may_have_names(tmp_path: Path):
    path = written(tmp_path / "a.csv", "who,age\nada,36\n")
    assert list(AgentList.from_csv(path, name_field="who")) == [Agent({"age": 36}, name="ada")]


def test_jsonl_keeps_the_types_of_json(tmp_path: Path):
    path = written(tmp_path / "a.jsonl", f'{{"a": 1, "b": [1, null], "c": "07"}}\n\n{{"a": true, "big": {2**70}}}\n')
    scenarios = ScenarioList.from_jsonl(path)
    assert list(scenarios) == [{"a": 1, "b": [1, None], "c": "07"}, {"a": True, "big": 2**70}]
    assert scenarios.source.census.kinds["a"] == {ColumnKind.INT, ColumnKind.BOOL}
    assert scenarios.source.census.kinds["big"] == {ColumnKind.TAGGED}


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.csv", b"a,b\n1,2\n\n1,2,3\n", r"a\.csv, line 4: 3 cells where the header has 2"),
        ("a.csv", b"a,b\n1\n", r"a\.csv, line 2: 1 cell where"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"a,a\n1,2\n", "'a' twice"),
        ("a.csv", b"a,\n1,2\n", "without a name"),
        ("a.csv", b"a\n\xff\xfe\n", r"a\.csv, line 2 is not UTF-8"),
        (
            "a.csv",
            b"a\n" + b"b\n" * 9_000 + b"caf\xe9\n" + b"c\n" * 9_000,
            r"line 9002 is not UTF-8.*'café'.*encoding=\"cp1252\"",
        ),
        ("a.csv", b"\xff\xfea", "is not utf-16"),
        ("a.csv", b"a;b\n1;2\n1\n", "line 3: 1 cell where the header has 2.*';', which separates cells"),
        ("a.csv", b'a,b\nx,y\n"x"y,c\n', "line 3: ',' expected"),
        ("a.csv", b"," * 2_000_000, "line 1 has more than 100,000 cells"),
        ("a.jsonl", b'{"a":' + b"[" * 100_000, "line 1: it is nested too deeply"),
        ("a.csv", b'a\n"open\n', r"a\.csv, line"),
        ("a.jsonl", b'{"a": 1}\n{"a": \n', r"a\.jsonl, line 2"),
        ("a.jsonl", b"[1]\n", "line 1: not a JSON object"),
        ("a.jsonl", b'{"a": "\xff"}\n', r"a\.jsonl, line 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, name: str, content: bytes, told: str):
    assert_refused(tmp_path / name, content, told)


@pytest.mark.parametrize(
    ("name", "before", "told"), [("a.csv", b"a\n", "line 2 is longer"), ("a.jsonl", b"", "line 1 is longer")]
)
def test_a_line_above_64_mb_is_refused(tmp_path: Path, name: str, before: bytes, told: str):
    assert_refused(tmp_path / name, before + b"x" * 65_000_000, f"{told} than 64 MB")


def assert_refused(path: Path, content: bytes, told: str) -> None:
    path.write_bytes(content)
    read: Callable[[Path], Any] = ScenarioList.from_csv if path.suffix == ".csv" else ScenarioList.from_jsonl
    with pytest.raises(ListError, match=told):
        read(path)


@pytest.mark.parametrize(
    ("content", "row"),
    [
        ("city;n\nOslo;1\n", {"city": "Oslo", "n": 1}),
        ('"City, town";n\nOslo;1,5\n', {"City, town": "Oslo", "n": "1,5"}),
        ("city\tn\nOslo\t1\n", {"city": "Oslo", "n": 1}),
        ('city,n\n"a;b",1\n', {"city": "a;b", "n": 1}),
    ],
)
def test_semicolons_and_tabs_separate_cells_where_the_header_has_them(
    tmp_path: Path, content: str, row: dict[str, Any]
):
    assert list(ScenarioList.from_csv(written(tmp_path / "a.csv", content))) == [Scenario(row)]


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ListError, match=r"nowhere\.csv cannot be read: No such file"):
        ScenarioList.from_csv(tmp_path / "nowhere.csv")


def test_a_file_that_changes_before_the_run_is_noticed(tmp_path: Path):
    path = written(tmp_path / "a.csv", "city\nOslo\n")
    job = survey.by(ScenarioList.from_csv(path), Model("test"))
    path.write_text("city\nLima\n")
    with pytest.raises(ListError, match="changed while the job was set up"):
        job.run(tmp_path / "a.run")


def test_a_scenario_may_be_a_plain_dict_and_an_agent_only_an_agent():
    assert list(ScenarioList([{"a": 1}])) == [Scenario({"a": 1})]
    with pytest.raises(ListError, match="agent 0 of the list is a dict"):
        AgentList([{"a": 1}])  # pyright: ignore[reportArgumentType]


def test_too_many_different_fields_are_refused():
    with pytest.raises(ListError, match="more than 10,000 different fields"):
        ScenarioList({f"field{number}": 1} for number in range(10_001))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(ListError, match=r"rows\.csv is not a file"):
        ScenarioList.from_file(tmp_path / "rows.csv")
