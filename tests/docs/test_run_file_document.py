"""docs/run-file.md: its tables and queries, with another SQLite than ours, in another process, while the run writes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.store.run_file.rows import row_batch
from headrace.survey.agent import Agent
from headrace.survey.scenario import Scenario
from tests.results import files

DOCUMENT = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text("utf-8")
READ = """
import json, sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
for query in json.loads(sys.argv[2]):
    print(json.dumps(connection.execute(query).fetchall()))
"""


def read(path: Path, *queries: str) -> list[list[list[object]]]:
    command = [sys.executable, "-c", READ, str(path), json.dumps(queries)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert found.stderr == ""
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return files.city(tmp_path / "city.run")


def test_the_queries_of_the_document_run(path: Path) -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
    failures, runs, done, ages = read(path, *(line.partition(";")[0] for line in block.strip().splitlines()))
    assert failures[0] == [3, "mood", "invalid answer", "question 0 < 3"]
    assert len(runs) <= 1
    assert done == [[40]]
    assert ages[:2] == [[0, 20], [1, 21]]


def test_the_tables_of_the_document_have_their_columns(path: Path) -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (`.*) \|$", DOCUMENT.partition("worth reading")[2], re.MULTILINE)
    assert len(rows) == 6
    for tables, columns in rows:
        names = re.findall(r"`(\w+)`", columns.partition(":")[0])
        for table in re.findall(r"\w+", tables):
            assert read(path, f"select {', '.join(names)} from {table} limit 1")


def test_the_view_is_read_while_the_run_writes(tmp_path: Path) -> None:
    path = tmp_path / "live.run"
    agents = [Agent(name=f"p{n}", traits={"age": n, "pets": ["cat"]}) for n in range(20)]
    of = files.job(files.survey("tags", "ok", bools=["ok"]), agents, [Scenario({"the city": "Oslo"})])
    query = (
        "select json_extract(cast(tags as text), '$[0]'), ok, \"agent.age\", json_extract(\"agent.pets\", '$[0]'),"
        ' "scenario.the city", "interview.status", "model.model", "iteration.iteration" from results'
        ' order by "interview.ordinal"'
    )
    with files.opened(path, of) as file:
        for first in (0, 10):
            rows = [files.row(file, of, n, [[f"t{n}"], True]) for n in range(first, first + 10)]
            file.journal.commit([row_batch(rows)], [])
            (found,) = read(path, query)
            assert len(found) == first + 10
            assert found[-1] == [f"t{first + 9}", 1, first + 9, "cat", "Oslo", "done", "test", 0]
    assert len(read(path, query)[0]) == 20
