"""What the command says of a service that refuses or fails: once, and with what to do next."""

import os
from pathlib import Path

import pytest

from tests.cli.forked import headrace
from tests.models.server import HostileServer

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text("questions:\n  - {kind: free_text, name: why, text: 'Why {{ scenario.city }}?'}\n")
    (tmp_path / "cities.csv").write_text("city\nOslo\nLima\n")
    return tmp_path


def words(server: HostileServer, more: str = "") -> tuple[str, ...]:
    model = f"qwen3,base_url={server.url}{more}"
    return ("run", "s.yaml", "--scenarios", "cities.csv", "--model", model, "-o", "a.run", "--no-cache")


@pytest.mark.parametrize(
    ("behaviour", "is_another_job"), [("404", True), ("400", True), ("redirect", True), ("401", False)]
)
def test_a_refused_model_is_told_with_a_way_to_go_on_that_works(place: Path, behaviour: str, is_another_job: bool):
    with HostileServer() as server:
        server.behave(behaviour)
        refused = headrace(place, *words(server))
        assert refused.returncode == 1
        assert ("another job: give it another -o, or --fresh." in refused.stderr) is is_another_job
        server.behave("ok")
        mended = words(server, ",temperature=0.5") if is_another_job else words(server)
        assert headrace(place, *mended, *["--fresh"] * is_another_job).returncode == 0


def test_a_resumed_run_without_its_key_is_told_what_takes_another(place: Path):
    with HostileServer() as server:
        server.behave("ok")
        with_key = {**os.environ, "MY_KEY": "abcdefghijklmnop", "OTHER_KEY": "ponmlkjihgfedcba"}
        begun = headrace(place, *words(server, ",api_key_env=MY_KEY"), "--limit", "1", environment=with_key)
        assert begun.returncode == 0, begun.stderr
        refused = headrace(place, "resume", "a.run")
        assert refused.returncode == 1
        assert "Set MY_KEY, or run the whole command (run or map) again with another variable" in refused.stderr
        assert headrace(place, *words(server, ",api_key_env=OTHER_KEY"), environment=with_key).returncode == 0


@pytest.mark.parametrize(("behaviour", "words_of_it"), [("400", "hot"), ("401", "Incorrect API key"), ("404", "exist")])
def test_a_refusal_is_told_once(place: Path, behaviour: str, words_of_it: str):
    with HostileServer() as server:
        server.behave(behaviour)
        said = headrace(place, *words(server)).stderr
    assert said.count(words_of_it) == 1
    assert said.count("Check the") == 1
    assert "headrace: 0 of 2 interviews are done and saved." in said
