"""Queries that need more room for temporary files than there is say so, and do not blame the run file."""

import subprocess
import sys
from pathlib import Path

from tests.results import files

PROGRAM = """
import resource, sys
from headrace import Results
from headrace.errors import StorageFull
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # writing beyond fails, as on a full disk
results = Results.open(sys.argv[1])
for query in (
    lambda: list(results.sort_by("mood")),
    lambda: list(results.mutate("loud = mood.upper()").sort_by("loud")),
    lambda: list(results.distinct("mood")),
    lambda: list(results.tally("mood")),
    lambda: list(results.sql("select mood from self order by mood desc")),
):
    try:
        query()
    except StorageFull as error:
        print(error.message, error.fix)
    else:
        print("there was room")
"""


def test_a_full_directory_of_temporary_files_is_named(tmp_path: Path):
    job = files.job(files.survey("mood"), [files.Agent(name=f"p{number}") for number in range(400)])
    path = files.write(tmp_path / "a.run", job, lambda ordinal: [f"{ordinal:08}" * 2_000])
    (tmp_path / "scratch").mkdir()
    env = {"SQLITE_TMPDIR": str(tmp_path / "scratch"), "TMPDIR": str(tmp_path / "scratch"), "PATH": ""}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    said = ended.stdout.splitlines()
    assert len(said) == 5
    for line in said:
        assert line.startswith(f"Temporary files in {tmp_path / 'scratch'} cannot grow"), said
        assert "SQLITE_TMPDIR" in line
        assert "run the same job" not in line


EXCEL = """
import resource, sys
from headrace import Results
from headrace.errors import OptionError
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    Results.open(sys.argv[1]).to_excel(sys.argv[2])
except OptionError as error:
    print(error.message)
"""


def test_a_workbook_that_has_no_room_is_refused_and_leaves_nothing(tmp_path: Path):
    job = files.job(files.survey("mood"), [files.Agent(name=f"p{number}") for number in range(200)])
    path = files.write(tmp_path / "a.run", job, lambda ordinal: [f"{ordinal:08}" * 2_000])
    (tmp_path / "scratch").mkdir()
    env = {"TMPDIR": str(tmp_path / "scratch"), "PATH": ""}
    command = [sys.executable, "-c", EXCEL, str(path), str(tmp_path / "b.xlsx")]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert "b.xlsx cannot be written" in ended.stdout, ended.stderr
    assert [*(tmp_path / "scratch").iterdir()] == []
    assert not [each for each in tmp_path.iterdir() if "xlsx" in each.name]
