import subprocess
import sys

import headrace

PUBLIC = [
    "Agent",
    "AgentList",
    "Cache",
    "ChangeInstruction",
    "Coop",
    "Dataset",
    "EndOfSurvey",
    "Engine",
    "FileStore",
    "HeadraceError",
    "HeadraceWarning",
    "Instruction",
    "Job",
    "Jobs",
    "Model",
    "ModelList",
    "Notebook",
    "Priority",
    "Question",
    "QuestionBudget",
    "QuestionCheckBox",
    "QuestionCheckBoxWithOther",
    "QuestionCompute",
    "QuestionDemand",
    "QuestionDict",
    "QuestionDropdown",
    "QuestionExtract",
    "QuestionFreeText",
    "QuestionFunctional",
    "QuestionLikertFive",
    "QuestionLinearScale",
    "QuestionList",
    "QuestionMarkdown",
    "QuestionMatrix",
    "QuestionMultipleChoice",
    "QuestionMultipleChoiceWithOther",
    "QuestionNumerical",
    "QuestionPydantic",
    "QuestionRandom",
    "QuestionRank",
    "QuestionTopK",
    "QuestionYesNo",
    "Ray",
    "Result",
    "Results",
    "Scenario",
    "ScenarioList",
    "Survey",
    "task",
]


def test_the_public_names_are_these_and_sorted():
    assert headrace.__all__ == PUBLIC == sorted(PUBLIC)
    assert all(hasattr(headrace, name) for name in PUBLIC)


def test_an_engine_has_these_verbs():
    verbs = [name for name in vars(headrace.Engine) if not name.startswith("_")]
    assert sorted(verbs) == [
        "drain", "events", "every", "failed", "find", "handle", "register", "reopen", "resume_surveys", "run",
        "status", "stop_beating", "stuck", "submit", "submit_nowait", "unfinished",
    ]  # fmt: skip


def test_importing_headrace_loads_no_heavy_library():
    heavy = ("aiohttp", "duckdb", "numpy", "pandas", "polars", "psutil", "pyarrow", "rich", "typer", "sqlite3")
    program = f"import headrace, sys; print([name for name in {heavy!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_a_first_run_loads_no_heavy_library(tmp_path):
    program = """
import sys
from headrace import Model, QuestionFreeText, Survey
survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
results = survey.by(Model("test", canned_response="x")).run(sys.argv[1])
assert results[0].answer["q"] == "x"
print([name for name in ("rich", "pandas", "pyarrow", "psutil", "ctypes.util") if name in sys.modules])
"""
    command = [sys.executable, "-c", program, str(tmp_path / "a.run")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
