"""What processes that are started often must not load: by the names of modules, since time is the machine's."""

import subprocess
import sys

import pytest

_LOADED = "import sys; {}; print(*sys.modules)"


def _loaded(statement: str) -> list[str]:
    command = [sys.executable, "-c", _LOADED.format(statement)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


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
