"""CSV files as people have them: delimiters, encodings, numbers with gaps, broken quotes, cells of any size."""

import csv
import gzip
import random

import pytest

from headrace import Agent, AgentList, ScenarioList
from headrace.errors import ListError
from headrace.plan.sources.csv_file import LONGEST_CELL
from headrace.plan.sources.hashed_file import HashedFile
from headrace.plan.sources.text_files import text_lines


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,2\n", {"a": 1, "b": 2}),
        ("a;b\n1;2,5\n", {"a": 1, "b": "2,5"}),
        ("a\tb\n1\t2\n", {"a": 1, "b": 2}),
        ("a|b\n1|x y\n", {"a": 1, "b": "x y"}),
        ('"a;x",b\n1,2\n', {"a;x": 1, "b": 2}),
        ("a\n1\n", {"a": 1}),
        ("review\nGood; cheap\n", {"review": "Good; cheap"}),
        ("a,b\r1,2\r", {"a": 1, "b": 2}),
        ("a,b\r\n1,2\r\n", {"a": 1, "b": 2}),
        ("\ufeffa,b\n1,2\n", {"a": 1, "b": 2}),
        ("a,b\n1,é\n".encode("utf-16"), {"a": 1, "b": "é"}),
        ("a,b\n1,é\n".encode("utf-16-be").join([b"\xfe\xff", b""]), {"a": 1, "b": "é"}),
        ("\n\na,b\n\n1,2\n", {"a": 1, "b": 2}),
        ('a,b\n1,"x\u2028y\n\x0bz"\n', {"a": 1, "b": "x\u2028y\n\x0bz"}),
    ],
)
def test_delimiters_and_encodings_are_found(tmp_path, content, expected):
    assert ScenarioList.from_csv(written(tmp_path / "a.csv", content)).to_dicts() == [expected]


def test_delimiter_and_encoding_can_be_named(tmp_path):
    path = written(tmp_path / "a.csv", "naïve:city\n1:Zürich\n".encode("cp1252"))
    expected = [{"naïve": 1, "city": "Zürich"}]
    assert ScenarioList.from_csv(path, delimiter=":", encoding="cp1252").to_dicts() == expected
    assert AgentList.from_csv(path, delimiter=":", encoding="latin-1").to_dicts() == expected
    with pytest.raises(ListError, match="no encoding 'latin-99'"):
        ScenarioList.from_csv(path, encoding="latin-99")
    with pytest.raises(ListError, match="'::' cannot separate cells"):
        ScenarioList.from_csv(path, delimiter="::")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["1", "", "3"], [1, None, 3]),
        (["1.5", "2"], [1.5, 2.0]),
        (["1.5", "", "2"], [1.5, None, 2.0]),
        (["", ""], ["", ""]),
        (["1", "07"], ["1", "07"]),
        (["1", "x", ""], ["1", "x", ""]),
        (["-0", "1"], ["-0", "1"]),
        (["1\n2", "3"], ["1\n2", "3"]),
        (["٣", "4"], ["٣", "4"]),
        (["9" * 18, "-1"], [10**18 - 1, -1]),
        (["9" * 19, "1"], ["9" * 19, "1"]),
        (["1e-05", "2"], [1e-05, 2.0]),
        (["0.30000000000000004", "-1.5E+10"], [0.30000000000000004, -1.5e10]),
        (["9e288", "9e290"], ["9e288", "9e290"]),
        (["1e", "2"], ["1e", "2"]),
        (["nan", "2.0"], ["nan", "2.0"]),
    ],
)
@pytest.mark.parametrize("before", [0, 511, 600])
def test_a_column_of_plain_numbers_holds_numbers_and_one_other_cell_keeps_it_text(tmp_path, cells, expected, before):
    """Also where that cell stands in a later block than the first."""
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["n", "t"], *([5, "x"] for _ in range(before)), *([cell, "x"] for cell in cells)])
    listed = ScenarioList.from_csv(path)
    values = [row["n"] for row in listed.to_dicts()]
    if before and expected == ["", ""]:  # numbers, of which some are missing
        expected = [None, None]
    first = type(expected[0])(5) if expected[0] is not None else 5
    assert values == [first] * before + expected
    assert [row["n"] for row in listed[before:].to_dicts()] == expected


def test_every_cell_comes_back_as_the_library_reads_it(tmp_path):
    rng = random.Random(7)
    letters = 'ab ,;"\n\r\t|é\u2028€'
    rows = [["".join(rng.choices(letters, k=rng.randrange(9))) for _ in range(3)] for _ in range(3_000)]
    rows = [["a", "b", "c"], *(["x", *row[1:]] for row in rows)]
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    assert ScenarioList.from_csv(path, delimiter=",").to_list() == [tuple(row) for row in rows[1:]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('a,b\n1,2\n3,"open\n5,6\n7,8\n', r"lines 3 to 5: unexpected end of data\. Look for a quote"),
        ('a,b\n1,"x"y\n', r"line 2: ',' expected after '\"'"),
        ("a,b\n" + "1,2\n" * 1_500 + '3,"x\ny",4\n' + "5,6\n" * 900, "line 1503: 3 cells where the header has 2"),
        ("a,b\n1,2\n3\n", "line 3: 1 cell where the header has 2.*',', which separates.*delimiter="),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b,a\n1,2,3\n", "'a' twice"),
    ],
)
def test_a_broken_row_is_named_with_its_lines(tmp_path, content, message):
    with pytest.raises(ListError, match=message):
        ScenarioList.from_csv(written(tmp_path / "a.csv", content)).to_dicts()


def test_a_cell_may_hold_a_document_and_no_more(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('n,text\n1,"' + "long " * 1_000_000 + '"\n')
    assert len(ScenarioList.from_csv(path)[0]["text"]) == 5_000_000
    path.write_text('n,text\n1,"' + "long\n" * (LONGEST_CELL // 5 + 1) + '"\n')
    with pytest.raises(ListError, match=r"lines 2 to \d+: a cell is longer than 16 MB"):
        ScenarioList.from_csv(path)


def test_names_that_are_no_identifiers_stay_as_they_are(tmp_path):
    path = written(tmp_path / "a.csv", "Review Text,2nd,class\nfine,1,a\n")
    assert ScenarioList.from_csv(path).field_names == ["Review Text", "2nd", "class"]
    assert ScenarioList.from_csv(path).snakify().field_names == ["review_text", "_2nd", "class_"]


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "packed by gzip.*zcat"),
        (b"PAR1\x15\x04\xff\xfe", "a Parquet file"),
        (b"PK\x03\x04\x14\xff\xfe", "a workbook"),
        ("a,ü\n1,2\n".encode("utf-16-le"), 'looks like UTF-16.*encoding="utf-16-le"'),
        ("a,ü\n1,2\n".encode("utf-16-be"), 'encoding="utf-16-be"'),
        (b",a\n0,1\n", "index=False"),
        (b"sep=;\na;b\n1;2\n", "Remove the first line, sep="),
    ],
)
def test_what_is_no_plain_csv_is_named_with_a_way_out(tmp_path, content, hint):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ListError, match=hint):
        len(ScenarioList.from_csv(tmp_path / "x.csv"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a, b\n 1, 2\n 3,4\n", [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
        ('a, b\n1, "x, y"\n2, z\n', [{"a": 1, "b": "x, y"}, {"a": 2, "b": "z"}]),
        ("a,b\n1 , 2.5\n 3,\n", [{"a": 1, "b": 2.5}, {"a": 3, "b": None}]),
        ("a,b\n1,x\n , y\n", [{"a": 1, "b": "x"}, {"a": None, "b": " y"}]),
        ('"a, b",c\n1, x\n', [{"a, b": 1, "c": " x"}]),
        ("a,b\n 07, 1\n", [{"a": " 07", "b": 1}]),
        ("a,b\n ,1\n", [{"a": " ", "b": 1}]),
    ],
)
def test_blanks_around_numbers_and_behind_delimiters_do_not_count(tmp_path, content, expected):
    assert ScenarioList.from_csv(written(tmp_path / "a.csv", content)).to_dicts() == expected


def test_an_empty_cell_is_no_name_and_no_instruction(tmp_path):
    people = AgentList([Agent(name="Ada", traits={"age": 3}, instruction="Be brief."), Agent(traits={"age": 4})])
    people.to_csv(tmp_path / "a.csv")
    assert AgentList.from_csv(tmp_path / "a.csv") == people
    assert AgentList.from_file(tmp_path / "a.csv") == people
    assert AgentList.from_source("csv", tmp_path / "a.csv") == people
    assert AgentList.from_file(tmp_path / "?.csv").names == ["Ada", None]
    written(tmp_path / "b.csv", "who,age\nBob,1\n,2\n")
    assert AgentList.from_csv(tmp_path / "b.csv", name_field="who").names == ["Bob", None]
    assert AgentList.from_source("csv", tmp_path / "b.csv", name_field="who").names == ["Bob", None]
    assert ScenarioList.from_csv(tmp_path / "b.csv")[1] == {"who": "", "age": 2}


def test_lines_that_are_left_after_their_file_was_closed_end_in_silence(tmp_path):
    with HashedFile(written(tmp_path / "a.csv", "a\n1\n2\n")) as file:
        lines = text_lines(file, tmp_path / "a.csv", "utf-8")
        assert next(lines) == "a\n"
    lines.close()  # as after a Ctrl-C between the two
