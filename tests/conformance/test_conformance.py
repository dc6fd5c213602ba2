"""Programs as EDSL's users write them, run as written but for the import; see programs/ and values.json."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conformance.conformance_values import NOT_YET, PROGRAMS, RUNNER, VALUES, kept_values, program_names

KEPT = kept_values()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All programs in one process, so that a program costs milliseconds."""
    home = tmp_path_factory.mktemp("home")
    found = home / "outcomes.json"
    environment = {**os.environ, "HEADRACE_MODEL": ""}
    command = [sys.executable, RUNNER, "headrace", PROGRAMS, found]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(found.read_text("utf-8"))


def test_there_are_at_least_eighty_programs_each_with_its_value():
    assert len(program_names()) >= 80
    assert program_names() == sorted(KEPT)


def test_what_differs_from_edsl_says_why():
    for name, kept in json.loads(VALUES.read_text("utf-8")).items():
        assert ("ours" in kept) == ("reason" in kept), name
        assert "ours" in kept or "edsl" in kept, f"{name}: EDSL has an error and ours is not said"
        if "ours" in kept:
            assert kept["ours"] != kept.get("edsl", ...), f"{name}: both are the same, so there is no reason"


def test_what_is_not_yet_there_is_a_program():
    assert set(program_names()) >= NOT_YET


@pytest.mark.parametrize("name", program_names())
def test_the_program_gives_its_value(name: str, outcomes: dict[str, dict[str, Any]]):
    outcome = outcomes[name]
    if name in NOT_YET:
        assert outcome.get("value", ...) != KEPT[name].ours, f"{name} gives its value: take it out of not_yet.txt"
        pytest.xfail(outcome.get("error", f"gives {outcome.get('value')!r}"))
    assert "value" in outcome, outcome["trail"]
    assert outcome["value"] == KEPT[name].ours, KEPT[name].reason
