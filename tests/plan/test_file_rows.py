"""Lists made of files: directories, and columns that hold paths."""

import os
import socket
from pathlib import Path

import pytest

from headrace import FileStore, ScenarioList
from headrace.errors import HeadraceWarning, ListError
from tests.pictures import png


def test_a_directory_is_a_scenario_for_each_file(tmp_path: Path):
    for name in ("b.png", "a.png", ".hidden.png"):
        png(tmp_path / name)
    (tmp_path / "sub").mkdir()
    png(tmp_path / "sub" / "c.png")
    (tmp_path / "notes.txt").write_text("Hello")
    here = ScenarioList.from_directory(tmp_path, recursive=False)
    assert [each["content"].name for each in here] == ["a.png", "b.png", "notes.txt"]
    pictures = ScenarioList.from_directory(tmp_path, recursive=True, key_name="photo", glob="*.png")
    assert [each["photo"].name for each in pictures] == ["a.png", "b.png", "c.png"]
    assert len(ScenarioList.from_source("directory", tmp_path, recursive=False, glob="*.png")) == 2
    assert len(ScenarioList.from_file(tmp_path)) == 4


def test_what_is_no_file_is_passed_over_with_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    png(tmp_path / "a.png")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("listening")
        with pytest.warns(HeadraceWarning, match=r"4 entr.* passed over: .*listening \(no file"):
            found = list(ScenarioList.from_directory(tmp_path, recursive=True))
    assert [each["content"].name for each in found] == ["a.png"]


def test_a_directory_without_files_is_an_error_that_says_so(tmp_path: Path):
    with pytest.raises(ListError, match=r"holds no files.*recursive=True"):
        ScenarioList.from_directory(tmp_path)
    with pytest.raises(ListError, match="is no directory"):
        ScenarioList.from_directory(tmp_path / "missing")


def test_a_picture_in_a_directory_that_is_none_is_named(tmp_path: Path):
    png(tmp_path / "a.png")
    (tmp_path / "b.png").write_text("<html>")
    with pytest.raises(ListError, match=r"b\.png is no picture"):
        ScenarioList.from_directory(tmp_path)


def test_a_column_of_paths_becomes_a_column_of_files(tmp_path: Path):
    png(tmp_path / "a.png")
    (tmp_path / "rows.csv").write_text("photo,who\na.png,Tom\na.png,Jerry\n")
    rows = ScenarioList.from_file(tmp_path / "rows.csv").with_files("photo", folder=tmp_path)
    assert rows[0]["photo"] == FileStore(tmp_path / "a.png")
    assert len(rows) == 2
    with pytest.raises(ListError, match="Row 1, field 'photo': 7 is no path of a file"):
        len(ScenarioList([{"photo": 7}]).with_files("photo"))
    with pytest.raises(ListError, match="No such file"):
        len(ScenarioList([{"photo": "none.png"}]).with_files("photo", folder=tmp_path))


@pytest.mark.parametrize("empty", ["", " ", None])
def test_a_row_without_a_path_is_refused_and_can_be_left_out(tmp_path: Path, empty: str | None):
    png(tmp_path / "a.png")
    rows = ScenarioList([{"photo": "a.png", "n": 1}, {"photo": empty, "n": 2}])
    with pytest.raises(ListError, match=r"Row 2, field 'photo': there is no path\."):
        rows.with_files("photo", folder=tmp_path)
    assert len(rows.filter("n == 1").with_files("photo", folder=tmp_path)) == 1


def test_the_advice_for_a_row_without_a_path_holds(tmp_path: Path):
    png(tmp_path / "a.png")
    (tmp_path / "rows.csv").write_text("photo,who\na.png,Tom\n,Jerry\n")
    rows = ScenarioList.from_file(tmp_path / "rows.csv")
    with pytest.raises(ListError) as refused:
        rows.with_files("photo", folder=tmp_path)
    assert '.filter("photo")' in refused.value.fix
    assert len(rows.filter("photo").with_files("photo", folder=tmp_path)) == 1
