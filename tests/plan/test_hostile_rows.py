"""Files of rows that mean harm, or lie where nothing can be read: errors in words, in bounded time and memory."""

import gzip
import json
from pathlib import Path

import pytest

from headrace import ScenarioList
from headrace.errors import ListError
from headrace.plan.sources import json_file
from headrace.plan.sources.given_paths import paths_like


def test_spaces_in_json_take_no_more_than_reading_them(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    spaces = b" " * 20_000_000
    path.write_bytes(spaces + b'[{"a": 1}' + spaces + b', {"a": 2}]' + spaces)  # took minutes
    assert [row["a"] for row in ScenarioList.from_file(path)] == [1, 2]
    monkeypatch.setattr(json_file, "LONGEST_LINE", 10_000_000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(spaces, 1))
    with pytest.raises(ListError, match="more than 10 MB of spaces"):
        ScenarioList.from_file(path)


def test_small_objects_behind_a_large_one_are_not_copied_each_time(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"a": "x" * 8_500_000}] + [{"a": 1}] * 200_000))  # would copy 8 MB for each
    assert len(ScenarioList.from_file(path)) == 200_001


@pytest.mark.parametrize("rest", ["garbage", ' [{"a": 2}]', "]", ', {"a": 2}', "\n" * 100_000 + "1"])
def test_what_stands_behind_a_json_list_is_not_lost(tmp_path, rest):
    path = tmp_path / "a.json"
    path.write_text(f'[{{"a": 1}}]{rest}')
    with pytest.raises(ListError, match="goes on behind its JSON list"):
        ScenarioList.from_file(path)
    path.write_text('[{"a": 1}] \r\n')
    assert len(ScenarioList.from_file(path)) == 1


@pytest.mark.parametrize("name", ["a\0b", "x" * 5_000, "y/" * 5_000 + "z", "~nobody-of-this-name/a"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet", ".arrow", ".xlsx", ".db", "*.csv"])
def test_a_name_that_no_file_can_have_is_refused_in_words(name, suffix):
    for make in (ScenarioList.from_file, ScenarioList.from_source, ScenarioList.from_csv, ScenarioList.from_directory):
        with pytest.raises(ListError):
            make(name + suffix)


def test_patterns_that_are_none_and_directories_that_vanish_are_named(tmp_path, monkeypatch):
    with pytest.raises(ListError, match="is no pattern of names"):
        ScenarioList.from_file(tmp_path / "**a.csv")

    def vanished(*_):
        raise FileNotFoundError(2, "No such file or directory", "/proc/1/fd")

    monkeypatch.setattr(Path, "glob", vanished)
    with pytest.raises(ListError, match=r"cannot be found: No such file or directory \(/proc/1/fd\)"):
        paths_like(tmp_path / "*.csv")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux only")
def test_an_error_while_reading_is_in_words():
    for read in (ScenarioList.from_csv, ScenarioList.from_jsonl, ScenarioList.from_parquet, ScenarioList.from_excel):
        with pytest.raises(ListError, match=r"/proc/self/mem|cannot be read"):
            read("/proc/self/mem")


def test_a_query_with_a_nul_is_refused_in_words(tmp_path):
    path = tmp_path / "a.db"
    ScenarioList([{"a": 1}]).to_sqlite(path, "t")
    with pytest.raises(ListError, match="null"):
        ScenarioList.from_sqlite(path, query="select 1\0")
