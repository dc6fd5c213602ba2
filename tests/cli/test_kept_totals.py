"""`headrace results` and `headrace export` of files that keep totals: with their rows, and without."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.forked import headrace
from tests.interviews.keeping.kept_jobs import TOTALS, Respondent, expected, kept_job

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("totals")
    job = kept_job(Respondent())
    job.run(folder / "nothing.run", keep="nothing", aggregate=TOTALS, group_by="scenario.city").close()
    job.run(folder / "rows.run", aggregate=TOTALS, group_by="scenario.city").close()
    job.run(folder / "plain.run").close()
    return folder


def refused(place: Path, *words: str) -> str:
    """What a command says that prints nothing else."""
    ended = headrace(place, *words)
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stdout
    return ended.stderr


CITIES = [row["city"] for row in expected()]


@pytest.mark.parametrize("words", [("nothing.run",), ("nothing.run", "--totals"), ("rows.run", "--totals")])
def test_totals_are_printed_and_exported(place: Path, tmp_path: Path, words: tuple[str, ...]):
    assert [line for line in CITIES if line not in headrace(place, "results", *words).stdout] == []
    printed = headrace(place, "results", *words, "--format", "csv")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert [row["scenario.city"] for row in csv.DictReader(printed.stdout.splitlines())] == CITIES
    assert headrace(place, "export", *words, "-o", str(tmp_path / "t.csv")).returncode == 0
    assert (tmp_path / "t.csv").read_text() == printed.stdout
    last = headrace(place, "results", *words, "--sort=-scenario.city", "--limit", "1", "--format", "csv").stdout
    assert [row["scenario.city"] for row in csv.DictReader(last.splitlines())] == CITIES[-1:]


@pytest.mark.parametrize("layout", ["table", "csv"])
@pytest.mark.parametrize(
    "words",
    [
        ("nothing.run", "--where", "agent.age > 300"),
        ("nothing.run", "--select", "mood"),
        ("nothing.run", "--group-by", "scenario.city"),
        ("nothing.run", "--sql", "select count(*) from self"),
        ("rows.run", "nothing.run"),
    ],
)
def test_rows_of_a_file_without_rows_are_refused_before_anything_is_printed(
    place: Path, words: tuple[str, ...], layout: str
):
    said = refused(place, "results", *words, "--format", layout)
    assert "nothing.run keeps no results (--keep nothing). headrace results RUN --totals shows" in said
    assert "results." not in said


def test_totals_are_of_one_file(place: Path):
    assert "keeps no results" in refused(place, "results", "nothing.run", "rows.run")
    assert "reads one run file" in refused(place, "results", "rows.run", "nothing.run", "--totals")


def test_totals_are_never_of_a_part(place: Path):
    for words in (("--where", "agent.age > 25"), ("--select", "mood"), ("--group-by", "mood")):
        assert "--totals are those that the run has kept" in refused(place, "results", "rows.run", "--totals", *words)
    assert "--aggregate 'n=count()'" in refused(place, "results", "plain.run", "--totals")


def test_a_name_and_a_format_that_contradict_each_other_are_refused(place: Path):
    for command in ("results", "export"):
        said = refused(place, command, "rows.run", "--format", "parquet", "-o", "x.csv")
        assert "x.csv is the name of a file in the format csv, and --format says parquet" in said
    assert not (place / "x.csv").exists()
    assert headrace(place, "export", "rows.run", "--format", "csv", "-o", "x.dat").returncode == 0


def test_a_dry_run_counts_as_often_as_the_file_asks(tmp_path: Path):
    survey = {"questions": [{"kind": "free_text", "name": "q", "text": "Why?"}]}
    (tmp_path / "s.json").write_text(json.dumps(survey))
    words = ("run", "s.json", "--model", "test,canned_response=x", "-o", "n.run")
    assert headrace(tmp_path, *words, "--n", "3", "--limit", "1").returncode == 0
    again = headrace(tmp_path, *words, "--dry-run", "--json")
    assert json.loads(again.stdout)["interviews"] == 3, again.stderr
    assert json.loads(headrace(tmp_path, *words, "--dry-run", "--json", "--fresh").stdout)["interviews"] == 1
    assert headrace(tmp_path, *words).stdout.startswith("3 interviews in")


def test_an_export_into_a_directory_is_refused_in_words(place: Path):
    assert "is a directory. Name a file in it" in refused(place, "export", "rows.run", "-o", ".", "--format", "csv")
