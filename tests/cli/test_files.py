"""`headrace map` over pictures: paths in a column, or a directory."""

import json
from pathlib import Path

import pytest

from tests.cli.forked import headrace
from tests.forks import Forks
from tests.pictures import png


@pytest.fixture
def place(tmp_path: Path, forks: Forks) -> Path:
    (tmp_path / "pets" / "more").mkdir(parents=True)
    png(tmp_path / "pets" / "cat.png")
    png(tmp_path / "pets" / "more" / "dog.png", shade=9)
    (tmp_path / "pets" / "rows.csv").write_text("photo,who\ncat.png,Tom\nmore/dog.png,Rex\n")
    return tmp_path


def prompts(place: Path, *words: str) -> list[str]:
    done = headrace(place, "map", *words, "--model", "test,canned_response=x", "-o", "a.run", "--fresh")
    assert (done.returncode, done.stderr) == (0, "")
    shown = headrace(place, "results", "a.run", "--select", "prompt.output_user_prompt", "--format", "jsonl")
    return [next(iter(json.loads(line).values())) for line in shown.stdout.splitlines()]


def test_a_column_holds_paths_seen_from_the_data_file(place: Path):
    found = prompts(place, "{{ who }}: {{ photo }}", "--data", "pets/rows.csv", "--image-column", "photo")
    assert [text.partition(", ")[0] for text in found] == ["Tom: [file cat.png", "Rex: [file dog.png"]


def test_a_directory_of_pictures_is_the_data(place: Path):
    (place / "pets" / "rows.csv").unlink()
    found = prompts(place, "See {{ photo }}", "--data", "pets", "--image-column", "photo")
    assert [text.partition(", ")[0] for text in found] == ["See [file cat.png", "See [file dog.png"]
    assert prompts(place, "See {{ content }}", "--data", "pets")[1].startswith("See [file dog.png")


def test_a_mistake_says_what_to_do(place: Path):
    words = ("map", "{{ photo }}", "--model", "test", "-o", "a.run")
    missing = headrace(place, *words, "--data", "pets/rows.csv", "--image-column", "picture")
    assert "picture" in missing.stderr
    (place / "pets" / "empty.csv").write_text("photo,who\ncat.png,Tom\n,Rex\n")
    empty = headrace(place, *words, "--data", "pets/empty.csv", "--image-column", "photo")
    assert (empty.returncode, "Row 2, field 'photo': there is no path" in empty.stderr) == (1, True)
    assert "leave such rows out of it" in empty.stderr
    (place / "pets" / "cat.png").write_text("<html>")
    broken = headrace(place, *words, "--data", "pets/rows.csv", "--image-column", "photo")
    assert "cat.png is no picture" in broken.stderr
