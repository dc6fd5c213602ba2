import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from headrace.cli.doctor import installed
from headrace.cli.doctor.diagnosis import Health
from headrace.installing import install_command
from headrace.workers.limit_mechanisms import enforcement_layers
from tests.cli.terminals import headrace

pytestmark = pytest.mark.usefixtures("forks")
SECTIONS = ["python", "core_libraries", "extras", "models", "memory", "limits", "run_files"]


def test_the_doctor_looks_at_everything_and_a_missing_extra_is_no_illness(headrace_home: Path):
    headrace("demo", "--size", "6")
    ended = headrace("doctor", "--json")
    told = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr, told["broken"]) == (0, "", [])
    assert list(told) == ["broken", *SECTIONS]
    assert told["run_files"]["kept"]["found"].startswith("1, taking ")
    assert told["run_files"]["place"]["found"] == str(headrace_home / "runs")
    assert list(told["limits"]) == [*dict(enforcement_layers()), "file locks", "Unix sockets"]
    assert [path.name for path in (headrace_home / "runs").iterdir()] == ["demo.run"]  # nothing is left behind


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other layers")
def test_the_doctor_speaks_of_limits_as_the_workers_do():
    told, layers = json.loads(headrace("doctor", "--json").stdout)["limits"], dict(enforcement_layers())
    assert told["RLIMIT_DATA"]["found"] == "active; tried in a child process, and it holds"
    assert (told["watchdog"]["state"], told["watchdog"]["found"]) == ("ok", layers["watchdog"])
    if layers["cgroup v2"] == "active":
        assert told["cgroup v2"]["found"] == told["RLIMIT_DATA"]["found"]
    else:
        assert told["cgroup v2"]["state"] == "unproven"
        assert layers["cgroup v2"].endswith(told["cgroup v2"]["found"])


def test_the_doctor_makes_no_directory(headrace_home: Path):
    assert headrace("doctor").returncode == 0
    assert not headrace_home.exists()


def test_keys_are_named_and_never_shown():
    told = headrace("doctor", OPENAI_API_KEY="sk-very-secret", ANTHROPIC_API_KEY="").stdout
    assert "OPENAI_API_KEY: set\n" in told
    assert "ANTHROPIC_API_KEY: set, but empty\n" in told
    assert "secret" not in told


def test_a_broken_core_library_is_told_with_its_cure(tmp_path: Path):
    (tmp_path / "zstandard.py").write_text("raise ImportError('its C library is missing')")
    ended = headrace("doctor", PYTHONPATH=f"{tmp_path}:{Path(installed.__file__).parents[3]}")
    assert ended.returncode == 1
    assert re.search(r"broken +zstandard: its C library is missing", ended.stdout)
    assert re.search(r"pip install .*--force-reinstall zstandard", " ".join(ended.stdout.split()))
    assert "Traceback" not in ended.stderr


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    ended = headrace("doctor", "--json", HEADRACE_HOME=str(tmp_path / "file" / "home"))
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["run_files"]["writable"]["state"] == "care"


def test_a_missing_extra_comes_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(installed, "_version", lambda distribution: None)
    found = {finding.name: finding for finding in installed.extras()}
    assert found["pandas"].state is Health.NONE
    assert found["pandas"].fix == install_command("pandas")


def test_the_core_libraries_are_those_that_the_package_declares():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"] if ";" not in line}  # type: ignore[index]
    assert set(installed.CORE) == declared
