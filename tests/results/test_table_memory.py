"""Grouping, joining and sorting many rows keep memory flat: measured in a child process."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.results import files

PROGRAM = """
import resource, sys
from headrace import Results

def numbers(count):
    return results.sql(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) "
        "select i, i %% 50000 as k, 'text ' || i || ' of some length, to be held' as t from n" % count, timeout_s=300)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

VERBS = {
    "group_by": lambda t: t.group_by("k").agg("median(i)", "nunique(t)", "first(t)", "sum(i)"),
    "join": lambda t: t.join(t, on="i"),
    "sort": lambda t: t.sort_by("t", reverse=True).tail(100_000),
    "distinct": lambda t: t.distinct("t"),
}
with Results.open(sys.argv[1]) as results:
    verb = VERBS[sys.argv[2]]
    assert sum(1 for _ in verb(numbers(2_000))) == 2_000
    before = peak()
    made = sum(1 for _ in verb(numbers(100_000)))
    print(made, peak() - before)
"""


@pytest.mark.parametrize("verb", ["group_by", "join", "sort", "distinct"])
def test_memory_stays_flat_over_a_hundred_thousand_rows(tmp_path: Path, verb: str) -> None:
    path = files.city(tmp_path / "city.run")
    command = [sys.executable, "-c", PROGRAM, str(path), verb]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    made, grown_mb = ran.stdout.split()
    assert int(made) == (50_000 if verb == "group_by" else 100_000)
    assert float(grown_mb) < 16  # the rows alone are 20 MB of Python objects
