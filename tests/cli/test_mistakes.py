"""A table of mistakes and what is printed: what happened, where, and what to do next; never a traceback."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.forked import headrace
from tests.forks import Forks

SURVEY = "questions:\n  - {kind: free_text, name: why, text: 'Why {{ scenario.city }}?'}\n"
RUN = ("run", "survey.yaml", "--scenarios", "cities.csv", "--model", "test")
MAP = ("map", "Label: {{ text }}", "--data", "rows.jsonl", "--model", "test")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    files = {
        "survey.yaml": SURVEY,
        "tab.yaml": "questions:\n\t- kind: free_text\n",
        "part.yaml": SURVEY + "skips: {}\n",
        "setting.yaml": "questions:\n  - {kind: free_text, name: why, txt: 'Why?'}\n",
        "kind.yaml": "questions:\n  - {kind: freetext, name: why, text: 'Why?'}\n",
        "empty.yaml": "questions: []\n",
        "broken.json": '{"questions": [',
        "cities.csv": "city\nOslo\n",
        "short.csv": "city,size\nOslo\n",
        "latin.csv": "city\nK\u00f6ln\n",
        "rows.jsonl": '{"text": "fine"}\n{"text": "awful"}\n',
        "gap.jsonl": '{"text": "fine"}\n{"txt": "awful"}\n',
        "list.jsonl": '{"text": "fine"}\n[1]\n',
        "label.json": '{"type": "objekt"}',
        "notes.txt": "not a run file",
        "program.py": "survey = 7\n",
        "raising.py": "raise ValueError('no such luck')\n",
    }
    for name, text in files.items():
        (place / name).write_text(text, "latin-1" if name == "latin.csv" else "utf-8")
    headrace(place, *RUN, "-o", "city.run")
    return place


PYTHON = re.compile(
    r"=True|my_function|\.by\(|Model\(|Results\.|Job\.|\b(memory|workers|n|max_cost|max_tokens_total|concurrency)="
)
MISTAKES = {
    ("run", "nothere.yaml"): "nothere.yaml cannot be read: No such file or directory. Check the path.",
    ("run", "tab.yaml"): "tab.yaml, line 2: found character '\\t' that cannot start any token. "
    "That line holds a tab: YAML wants spaces.",
    ("run", "part.yaml"): "part.yaml has a part 'skips'. Did you mean 'skip'?",
    (
        "run",
        "setting.yaml",
    ): "setting.yaml, question 1: a free_text question has no setting 'txt'. Did you mean 'text'?",
    ("run", "kind.yaml"): "kind.yaml, question 1: there is no kind of question called 'freetext'. "
    "Did you mean 'free_text'?",
    (
        "run",
        "empty.yaml",
        "--model",
        "test",
    ): "The survey has no questions. Add at least one, in a file under questions:.",
    ("run", "broken.json"): "broken.json is not valid JSON",
    ("run", "program:survay"): "program:survay cannot be imported: module 'program' has no attribute 'survay'",
    ("run", "program:survey"): "program:survey is a int, not a Survey.",
    (
        "run",
        "raising:survey",
    ): "raising:survey cannot be imported: ValueError: no such luck. To see where, add --debug.",
    ("run", ":survey"): ":survey cannot be read: No such file or directory.",
    (*RUN[:2], "--scenarios", "short.csv", "--model", "test"): "short.csv, line 2: 1 cell where the header has 2.",
    (*RUN[:2], "--scenarios", "latin.csv", "--model", "test"): "'Köln' looks right, --encoding cp1252.",
    (
        *RUN[:2],
        "--scenarios",
        "notes.txt",
        "--model",
        "test",
    ): ".zst behind texts. Give the file such a name, or hand it over as standard input: - < notes.txt",
    ("run", "rows.jsonl"): "its first line is no header. Rows are given with --agents, --scenarios or --data;",
    (*RUN[:2], "--model", "test"): "No scenarios with fields were given: add them with --scenarios.",
    (*RUN[:4],): "The job has no model. Add one with --model: local needs no key",
    (*RUN[:4], "--model", "qwen"): "Name its service: --model qwen,service_name=... with one of",
    (*RUN[:4], "--model", "m,api_key=x,base_url=http://127.0.0.1:9/v1"): "--model NAME,api_key_env=MY_KEY.",
    (
        *RUN[:4],
        "--model",
        "gpt-4o,api_key_env=NOT_SET",
    ): "or run the whole command (run or map) again with another variable: --model gpt-4o,api_key_env=NAME.",
    (*RUN, "--extend"): "--extend needs to know which file. Name the run file with -o.",
    (*RUN[:4], "--model", "m,base_url=http://127.0.0.1:9/v1", "--max-cost", "1"): "--max-cost 1.0 needs prices,",
    (*RUN, "--model", "test", "-o", "city.run"): "start over with --fresh (the old file is kept under another name).",
    (*RUN[:4], "--model", "test,latency=2"): "no parameter 'latency'. Did you mean 'latency_s'?",
    (*RUN[:4], "--model", "test,latency_s"): "'latency_s' is not a parameter. Write name,key=value,...",
    (*RUN, "-o", "notes.txt"): "notes.txt is not a run file.",
    (*RUN, "-o", "notes.txt/x.run"): "notes.txt",
    (*RUN, "-o", "/proc/x.run"): "/proc/x.run cannot be",
    (*RUN, "--memory", "12 parsecs"): "12 parsecs",
    (*RUN, "--memory", "1MB"): "write --memory +256MB for that much on top",
    (*RUN, "--fresh", "--extend"): "--fresh starts over and --extend goes on. Choose one of them.",
    (
        *RUN,
        "--n",
        "2",
        "-o",
        "city.run",
        "--scenarios",
        "rows.jsonl",
    ): "no scenario has a field 'city'. Known here: text.",
    (*MAP[:2], "--data", "gap.jsonl", "--model", "test"): "names 'text', which row 2 of 2 does not have. "
    "Give it one, or write {{ text | default('') }}.",
    (
        *MAP[:2],
        "--data",
        "list.jsonl",
        "--model",
        "test",
    ): "list.jsonl, line 2: not a JSON object. Write one JSON object",
    ("map", "Label: {{ txt }}", *MAP[2:]): "The text names 'txt', and no row has such a column. Did you mean 'text'?",
    ("map", "@nothere.txt", *MAP[2:]): "nothere.txt cannot be read: No such file or directory.",
    (*MAP, "--schema", "label.json"): "label.json is not a valid JSON schema",
    ("results", "nothere.run"): "nothere.run",
    ("results", "notes.txt"): "notes.txt is not a run file.",
    ("results", "city.run", "--where", "answer.wy == 'x'"): "There is no column 'answer.wy'",
    ("results", "city.run", "--select", "scenario.citty"): "Did you mean 'scenario.city'?",
    (
        "results",
        "city.run",
        "--format",
        "xml",
    ): "--format xml is not known. Use one of table, csv, jsonl, markdown, parquet.",
    ("status", "notes.txt"): "notes.txt is not a run file.",
    ("resume", "notes.txt"): "notes.txt is not a run file.",
}


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_is_told_in_words(place: Path, words: tuple[str, ...]):
    ended = headrace(place, *words)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("headrace: ")
    assert MISTAKES[words] in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not PYTHON.search(ended.stderr)


MODELS = {
    "tset": "No service is known for the model 'tset'.",
    "gpt4o": "Did you mean 'gpt-4o'?",
    "test,canned=Good": "no parameter 'canned'.",
    "test,temprature=1": "Did you mean 'temperature'?",
    "test,latency_s=abc": "latency_s='abc' must be a number",
    "qwen3,base_url=localhost:8000": "base_url='localhost:8000' is not an address.",
    "qwen3,base_url=@nothere.txt": "nothere.txt",
    "foo,service_name=opnai": "there is no service 'opnai'. Did you mean 'openai'?",
    "local,path=/nope.gguf": "/nope.gguf",
    "m,base_url=http://127.0.0.1:9/v1,temprature=1": "Did you mean 'temperature'?",
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("words", [RUN[:4], MAP[:4]], ids=["run", "map"])
def test_a_dry_run_refuses_the_models_that_a_run_refuses(place: Path, words: tuple[str, ...], model: str):
    dry = headrace(place, *words, "--model", model, "--dry-run")
    assert (dry.returncode, dry.stdout) == (1, "")
    if model.startswith("local") and find_spec("xllamacpp") is None:
        assert "xllamacpp" in dry.stderr
    else:
        assert MODELS[model] in dry.stderr
    assert dry.stderr == headrace(place, *words, "--model", model).stderr


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-0", "gpt-4o,api_key_env=NOT_SET"])
def test_a_dry_run_needs_no_key(place: Path, model: str):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    dry = headrace(place, *RUN[:4], "--model", model, "--dry-run", environment=environment)
    assert (dry.returncode, dry.stderr) == (0, "")


def test_a_dry_run_opens_no_file_that_a_study_from_elsewhere_names(place: Path):
    asked = "survey: {questions: [{kind: free_text, name: why, text: 'Why {{ scenario.city }}?'}]}"
    (place / "study.yaml").write_text(f"{asked}\nmodels: ['m,base_url=@list.jsonl']\n")
    words = ("run", "study.yaml", *RUN[2:4], "--dry-run")
    assert headrace(place, *words).returncode == 0
    allowed = headrace(place, *words, "--allow", "@list.jsonl")
    assert (allowed.returncode, "list.jsonl" in allowed.stderr) == (1, True)


@pytest.mark.parametrize(
    "words", [("rum",), ("run",), ("run", "x.yaml", "--concurency", "3"), ("run", "x", "--n", "0")]
)
def test_a_command_that_cannot_be_read_has_its_own_exit_code(place: Path, words: tuple[str, ...]):
    ended = headrace(place, *words)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_debug_shows_where_an_error_came_from(place: Path):
    ended = headrace(place, "run", "nothere.yaml", "--debug")
    assert ended.returncode == 1
    assert "Traceback" in ended.stderr
    assert ended.stderr.rstrip().endswith("Check the path.")


def test_a_fault_of_our_own_shows_a_traceback_and_says_so(place: Path):
    program = (
        "import sys; from headrace.cli import main, output\n"
        "def broken(*_, **__): raise RuntimeError('oh')\n"
        "output.show_results = broken; sys.argv = ['headrace', 'results', 'city.run']; main.main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "RuntimeError: oh" in ended.stderr
    assert "fault of Headrace" in ended.stderr


def test_a_data_file_that_grows_while_it_is_read_is_noticed(place: Path):
    program = (
        "from headrace import Job, Model\n"
        "from pathlib import Path\n"
        "rows = Path('growing.jsonl'); rows.write_text('{\"text\": 1}\\n')\n"
        "job = Job.map('{{ text }}', rows).by(Model('test', canned_response='x'))\n"
        'rows.write_text(\'{"text": 1}\\n{"text": 2}\\n\')\n'
        "job.run('growing.run')"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=False)
    assert "growing.jsonl changed while the job was set up" in ended.stderr
    assert not (place / "growing.run").exists()
