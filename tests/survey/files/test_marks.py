"""Marks of files in prompts: what a template prints in place of a file, and what nobody else can write."""

import json
from pathlib import Path

import pytest

from headrace import FileStore
from headrace.survey.files.marks import BrokenMark, mark_of, split
from tests.pictures import png


def test_a_mark_is_its_file_and_one_with_another_reference_is_refused(tmp_path: Path):
    """A service that has seen a mark, because a text printed it in another order, may answer with one of its own."""
    file = FileStore(png(tmp_path / "a.png"))
    mark = str(mark_of(file))
    words, places = split(f"See {mark}!")
    assert words == f"See {file.in_words}!"
    assert [place.file.path for place in places] == [file.path]
    stored = json.dumps(file.to_stored())
    assert stored in mark
    with pytest.raises(BrokenMark):
        split(mark.replace(stored, json.dumps({**file.to_stored(), "path": "/etc/passwd"})))
    with pytest.raises(BrokenMark):
        split(mark.replace(stored, "{}"))
    with pytest.raises(BrokenMark):
        split(mark[:-1])
