"""`headrace results` and `headrace export` as people use them: pipes, several files, kills in the middle."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from headrace import Results
from headrace.survey.agent import Agent
from tests.cli.forked import headrace
from tests.cli.live import command
from tests.cli.terminals import HEADRACE, environment, in_terminal
from tests.results import files

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    files.city(folder / "a.run", people=20)
    files.city(folder / "b.run", people=3)
    agents = (Agent({"n": n, "note": "x" * 200}) for n in range(8_000))
    files.write(folder / "long.run", files.job(files.survey("q"), agents), lambda n: [f"answer {n}"])
    return folder


def printed(place: Path, *words: str) -> str:
    ended = headrace(place, *words)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


def refused(place: Path, *words: str) -> str:
    ended = headrace(place, *words)
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


def piped(place: Path, line: str) -> "subprocess.CompletedProcess[bytes]":
    typed = line.replace("headrace", " ".join(HEADRACE), 1)
    return subprocess.run(
        ["bash", "-c", f"{typed}; exit ${{PIPESTATUS[0]}}"],
        cwd=place, env=environment(), capture_output=True, check=False, timeout=120,
    )  # fmt: skip


def test_a_minus_sorts_from_the_largest_and_equals_keep_their_order(place: Path):
    lines = printed(place, "results", "a.run", "--select", "agent.age,interview.ordinal", "--format", "jsonl",
                    "--sort", "-agent.age,interview.ordinal", "--limit", "4").splitlines()  # fmt: skip
    assert [tuple(json.loads(line).values()) for line in lines] == [(39, 38), (39, 39), (38, 36), (38, 37)]
    older = printed(place, "results", "a.run", "--select", "agent.age", "--sort-by", "agent.age", "--format", "csv")
    assert older.splitlines()[:2] == ["agent.age", "20"]


def test_several_run_files_are_read_as_one(place: Path):
    words = ("--select", "agent.agent_name,answer.rating", "--sort", "-answer.rating,agent.agent_name")
    lines = printed(place, "results", "a.run", "b.run", *words, "--format", "csv").splitlines()
    assert len(lines) == 1 + 40 + 6
    ratings = [int(line.partition(",")[2]) for line in lines[1:]]
    assert ratings == sorted(ratings, reverse=True)
    failed = printed(place, "results", "a.run", "b.run", "--failed").splitlines()
    assert len(failed) == 6 + 1


def test_groups_are_computed_sorted_and_written(place: Path, tmp_path: Path):
    grouped = (
        "--group-by",
        "scenario.city",
        "--agg",
        "mean = mean(answer.rating)",
        "--agg",
        "good=share(mood == 'Good')",
    )
    out = printed(place, "results", "a.run", "b.run", *grouped, "--sort", "-mean", "--format", "csv").splitlines()
    frame = pd.concat([to_frame(place / "a.run"), to_frame(place / "b.run")])
    means = frame.groupby("scenario.city")["answer.rating"].mean().sort_values(ascending=False)
    assert out[0] == "scenario.city,mean,good"
    assert [line.split(",")[0] for line in out[1:]] == list(means.index)
    assert [float(line.split(",")[1]) for line in out[1:]] == pytest.approx(list(means))
    counted = printed(place, "results", "a.run", "--group-by", "answer.mood,scenario.city", "--limit", "2")
    assert counted.splitlines()[0].split() == ["answer.mood", "scenario.city", "count"]
    assert "failed" not in counted
    printed(place, "export", "a.run", *grouped, "-o", str(tmp_path / "out.parquet"))
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 2
    whole = printed(place, "results", "a.run", "--agg", "n=count()", "--agg", "mean(rating)", "--format", "csv")
    mean = to_frame(place / "a.run")["answer.rating"].mean()
    assert whole.splitlines() == ["mean_rating,n", f"{mean},{len(to_frame(place / 'a.run'))}"]
    assert "Leave --select out" in refused(place, "results", "a.run", "--group-by", "mood", "--select", "mood")
    assert "nonsense" in refused(place, "results", "a.run", "--group-by", "mood", "--agg", "x=nonsense(rating)")


def to_frame(path: Path) -> pd.DataFrame:
    with Results.open(path) as results:
        return results.to_pandas()


def test_sql_is_asked_of_what_where_leaves(place: Path):
    query = "select city, count(*) as n from self group by city"
    out = printed(place, "results", "a.run", "--where", "agent.age < 25", "--sql", query, "--format", "csv")
    assert out == "city,n\nLima,5\nOslo,5\n"
    assert "--sql says itself which columns" in refused(place, "results", "a.run", "--sql", query, "--limit", "3")
    both = printed(place, "results", "a.run", "b.run", "--sql", query, "--format", "csv")
    assert both == "city,n\nLima,23\nOslo,23\n"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "xlsx", "sqlite", "md", "html"])
def test_the_file_s_name_says_the_format(place: Path, suffix: str, tmp_path: Path):
    target = tmp_path / f"out.{suffix}"
    told = printed(place, "export", "a.run", "b.run", "-o", str(target), "--select", "agent.age", "--where", "age < 23")
    assert told.startswith(f"exported a.run, b.run to {target}, ")
    ages = [20, 20, 21, 21, 22, 22] * 2
    match suffix:
        case "csv":
            assert pd.read_csv(target)["agent.age"].tolist() == ages
        case "jsonl":
            assert [json.loads(line)["agent.age"] for line in target.read_text().splitlines()] == ages
        case "parquet":
            assert pq.read_table(target)["agent.age"].to_pylist() == ages
        case "sqlite":
            with closing(sqlite3.connect(target)) as connection:
                assert [age for (age,) in connection.execute('SELECT "agent.age" FROM results')] == ages
        case "md":
            assert target.read_text() == "| agent.age |\n| --- |\n" + "".join(f"| {age} |\n" for age in ages)
        case "html":
            assert target.read_text().count("<tr>") == 13
        case _:
            assert target.read_bytes()[:2] == b"PK"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_what_cannot_be_exported_is_told_in_words(place: Path, tmp_path: Path):
    assert "does not say its format" in refused(place, "export", "a.run", "-o", str(tmp_path / "out"))
    assert "is not known. Use one of csv" in refused(place, "export", "a.run", "-o", "x", "--format", "docx")
    assert "run file itself" in refused(place, "export", "a.run", "b.run", "-o", "b.run", "--format", "csv")
    assert "is a run file, and would be lost" in refused(place, "export", "a.run", "-o", "b.run", "--format", "csv")
    assert "for looking at" in refused(place, "results", "a.run", "-o", "x.txt", "--format", "table")
    assert "--escape-formulas is for CSV" in refused(place, "export", "a.run", "-o", "x.md", "--escape-formulas")
    assert "No file and no format is named" in refused(place, "export", "a.run")
    assert "no name of a file that EDSL loads" in refused(place, "export", "a.run", "-o", "x.run2", "--format", "edsl")
    assert "whole interviews" in refused(place, "export", "a.run", "--format", "edsl", "--select", "agent.age")


def test_an_export_without_a_file_is_named_like_the_run_file_and_replaces_nothing(place: Path):
    assert printed(place, "export", "a.run", "--format", "edsl").startswith("exported a.run to a.json.gz, ")
    assert "a.json.gz is there already" in refused(place, "export", "a.run", "--format", "edsl")
    (place / "a.json.gz").unlink()


@pytest.mark.parametrize("layout", ["csv", "jsonl", "markdown", "table"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(place: Path, layout: str):
    # More than a pipe holds, several times over.
    ended = piped(place, f"headrace results long.run --format {layout} --limit 2000 | head -1")
    assert (ended.returncode, ended.stderr, ended.stdout.count(b"\n")) == (0, b"", 1)


def test_parquet_goes_into_a_pipe_and_not_to_a_terminal(place: Path, tmp_path: Path):
    ended = piped(place, f"headrace results a.run --format parquet > {tmp_path}/x.parquet")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 40
    shown = in_terminal("results", "a.run", "--format", "parquet", cwd=place)
    assert shown.returncode == 1
    assert "not for a terminal" in shown.text
    assert "PAR1" not in shown.raw


def test_ctrl_c_ends_it_without_a_word(place: Path):
    reading, writing = os.pipe()  # which nobody empties: the command waits in the middle
    process = subprocess.Popen(
        command("results", "long.run", "--format", "csv"),
        cwd=place, env=environment(), stdout=writing, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writing)
    assert os.read(reading, 10)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    os.close(reading)
    assert (process.returncode, told) == (130, b"")


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "sqlite"])
def test_a_killed_export_leaves_what_was_there(place: Path, tmp_path: Path, suffix: str):
    target = tmp_path / f"out.{suffix}"
    words = ("export", "long.run", "-o", str(target))
    printed(place, *words, "--limit", "3")
    before, source = target.read_bytes(), (place / "long.run").read_bytes()
    process = subprocess.Popen([*HEADRACE, *words], cwd=place, env=environment(), stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not list(tmp_path.glob(".*.part")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert target.read_bytes() == before or not list(tmp_path.glob(".*.part"))
    assert (place / "long.run").read_bytes() == source
    printed(place, *words)
    assert target.stat().st_size > len(before)
