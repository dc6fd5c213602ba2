"""What processes that are started often must not load: by the names of modules, since time is the machine's."""

import subprocess
import sys
from pathlib import Path

import pytest

from headrace import Model, QuestionFreeText, Survey

# Given a prefix, every module below it. `headrace.cli.output` prints results, for which all of their verbs are loaded.
FOR_RESULTS = ("headrace.results.results", "headrace.results.reading", "headrace.charts", "headrace.cli.output")
CALLS = ("headrace.models.endpoint", "headrace.models.limiter", "headrace.models.provider", "headrace.models.calls")
FOR_RUNNING = ("asyncio", "ssl", "aiohttp", *CALLS, "headrace.workers", "headrace.interviews.run")
FOR_SURVEYS = ("headrace.survey.questions", "headrace.survey.survey", "headrace.plan.job")
_COMMAND = """
from headrace.cli.main import main
sys.argv[0] = "headrace"
try:
    main()
except SystemExit:
    pass
"""


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    path = tmp_path / "runs" / "a.run"
    path.parent.mkdir()
    survey.by(Model("test", canned_response="x")).run(path)
    return path


def _loaded(program: str, *words: str) -> list[str]:
    command = [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules, file=sys.stderr)", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.split()


def _among(loaded: list[str], *unwanted: str) -> list[str]:
    """Those of the modules that begin with one of these names."""
    return [name for name in loaded if name.startswith(unwanted)]


def test_a_survey_loads_the_kinds_of_its_questions_alone():
    loaded = _loaded("from headrace import QuestionFreeText, Survey")
    assert "headrace.survey.questions.free_text" in loaded
    assert _among(loaded, "headrace.survey.questions.checkbox", "headrace.results", "asyncio", "ssl", "apsw") == []


def test_results_load_no_charts_until_one_is_drawn():
    assert _among(_loaded("from headrace import Results"), "headrace.charts") == []


@pytest.mark.parametrize("module", ["agents.workers.agent_worker", "interviews.workers.interview_worker"])
def test_a_worker_loads_nothing_that_only_its_engine_needs(module):
    engine = ("headrace.agents.engine", "headrace.interviews.run", "headrace.results.results", "headrace.charts")
    assert _among(_loaded(f"import headrace.{module}"), *engine, "rich", "aiohttp") == []


def test_status_loads_neither_the_survey_nor_the_verbs_of_results(run_file):
    loaded = _loaded(_COMMAND, "status", str(run_file))
    assert "headrace.cli.status.run_status" in loaded
    assert _among(loaded, *FOR_RESULTS, *FOR_RUNNING, *FOR_SURVEYS, "rich") == []


def test_runs_loads_neither_the_survey_nor_the_verbs_of_results(run_file, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(run_file.parent.parent))
    loaded = _loaded(_COMMAND, "runs")
    assert "headrace.tables" in loaded  # there is a run to list
    assert _among(loaded, *FOR_RESULTS, *FOR_RUNNING, *FOR_SURVEYS) == []
