"""No text of a model, a service or a file steers the terminal it is shown on, through whichever door it gets there."""

import csv
import io
import json
import os
import pty
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, Model, QuestionFreeText, Results, Survey
from headrace.cli.terminal import seen_from_here
from headrace.display import visible
from headrace.errors import HeadraceError, HeadraceWarning, ProviderRefused
from headrace.progress.pace import Pace, Progress
from headrace.progress.text import log_line
from tests.cli.terminals import headrace, in_terminal

pytestmark = pytest.mark.usefixtures("forks")
CLEAR, TITLE, RIGHT_TO_LEFT = "\x1b[2J", "\x1b]0;pwned\x07", "\N{RIGHT-TO-LEFT OVERRIDE}"
HOSTILE = f"before{CLEAR}{TITLE}\x9b31m{RIGHT_TO_LEFT}after"
SHOWN = r"before\x1b[2J\x1b]0;pwned\x07\x9b31m\u202eafter"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answered") / "a.run"
    asked = Survey([QuestionFreeText(question_name="why", question_text="Why?")])
    asked.by(Agent({"note": HOSTILE}), Model("test", canned_response=HOSTILE)).run(path).close()
    return path


def is_harmless(text: str) -> bool:
    return not any(sign in text for sign in (CLEAR, TITLE, "\x9b", RIGHT_TO_LEFT))


def test_ordinary_text_of_any_script_is_shown_as_it_is():
    text = (
        "Zoë, 東京, Здравствуйте, مرحبا,\tשלום\n family: \N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}, 1\N{NO-BREAK SPACE}000"
    )
    assert visible(text) == text


def test_an_error_says_what_a_service_wrote_without_obeying_it():
    error = ProviderRefused(f"The service says: {HOSTILE}")
    assert str(error) == f"The service says: {SHOWN}"
    assert error.message == str(error)
    assert is_harmless(str(HeadraceError("x", fix=HOSTILE)))


def test_a_table_of_sql_shows_escapes(answered: Path):
    with Results.open(answered) as results:
        table = results.sql('select why, "agent.note" as note from self')
        assert is_harmless(repr(table))
        assert r"before\x1b[2J" in repr(table)
        assert is_harmless(repr(results[0]))
        assert is_harmless(repr(results))
        assert is_harmless(table._repr_html_())
        assert is_harmless(results._repr_html_())


@pytest.mark.parametrize("layout", ["csv", "jsonl", "table"])
def test_results_at_a_terminal_do_not_steer_it(answered: Path, layout: str):
    shown = in_terminal("results", str(answered), "--format", layout, columns=200)
    assert shown.returncode == 0
    assert is_harmless(shown.raw)
    assert "u202e" in shown.raw


def test_results_that_go_elsewhere_are_the_bytes_that_were_answered(answered: Path, tmp_path: Path):
    piped = headrace("results", str(answered), "--format", "csv", "--select", "answer.why").stdout
    assert list(csv.reader(io.StringIO(piped, newline=""))) == [["answer.why"], [HOSTILE]]
    with Results.open(answered) as results:
        written = results.select("answer.why").to_jsonl(tmp_path / "a.jsonl").read_text()
    assert json.loads(written) == {"answer.why": HOSTILE}


def test_a_program_that_prints_csv_to_a_terminal_is_safe_too(answered: Path):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal, os.fdopen(ours, "rb", buffering=0) as reading:
        with Results.open(answered) as results:
            results.print_csv(terminal)
            results.print_jsonl(terminal)
        terminal.flush()
        assert is_harmless(reading.read(4096).decode())


def test_progress_quotes_a_service_on_one_harmless_line():
    progress = Progress(
        done=1, total=2, reused=0, failed=0, in_flight=1, memory_bytes=1, budget_bytes=2, notice=f"x {HOSTILE}\n\nup"
    )
    pace = Pace()
    pace.read(progress, 0.0)
    assert is_harmless(log_line(progress, pace))
    assert "\n" not in log_line(progress, pace)


def test_a_hostile_services_error_does_not_reach_the_terminal(tmp_path: Path):
    class Hostile(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"error": {"message": HOSTILE}}).encode()
            self.send_response(400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        (tmp_path / "s.yaml").write_text("questions: [{kind: free_text, name: q, text: Why}]")
        model = f"any,base_url=http://127.0.0.1:{server.server_port}/v1"
        words = ("run", "s.yaml", "--model", model, "-o", "a.run", "--no-cache")
        shown = in_terminal(*words, cwd=tmp_path, columns=200, OPENAI_API_KEY="k")
        server.shutdown()
        thread.join()
    assert r"before\x1b[2J" in shown.raw
    assert is_harmless(shown.raw)


CONCEAL = "\x1b[8m"
NAME = f"it's a{CONCEAL}\nRun it?\N{RIGHT-TO-LEFT OVERRIDE}.run"


@pytest.fixture
def concealing(answered: Path, tmp_path: Path) -> Path:
    """A run file whose name would hide whatever is shown after it, and write a line of its own."""
    return Path(shutil.copy(answered, tmp_path / NAME))


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--watch"],
        ["results"],
        ["verify"],
        ["plot", "--memory"],
        ["resume"],
        ["compact"],
        ["top"],
    ],
    ids=" ".join,
)
def test_a_file_s_name_does_not_steer_the_terminal(concealing: Path, words: list[str]):
    command, *options = words
    if command == "top":
        shown = headrace(command, NAME, cwd=concealing.parent).stdout
    else:
        shown = in_terminal(command, NAME, *options, cwd=concealing.parent, columns=200).raw
    assert CONCEAL not in shown
    assert RIGHT_TO_LEFT not in shown


def test_a_name_that_no_command_takes_does_not_steer_the_terminal(concealing: Path):
    shown = in_terminal("status", NAME, NAME, cwd=concealing.parent, columns=200)
    assert shown.returncode == 2
    assert "extra argument" in shown.text
    assert CONCEAL not in shown.raw


@pytest.mark.parametrize(
    "name", ["plain.run", "two words.run", "it's.run", "Zoë 東京.run", NAME, "a\\b\t.run", "b\udcff.run"]
)
def test_a_path_that_is_shown_can_be_copied_into_a_shell(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    shown = seen_from_here(tmp_path / name)
    assert visible(shown) == shown
    assert "\n" not in shown
    typed = subprocess.run(["bash", "-c", f"printf %s {shown}"], capture_output=True, check=True).stdout
    assert os.fsdecode(typed) == name


def test_a_warning_says_what_a_file_holds_without_obeying_it():
    assert str(HeadraceWarning(HOSTILE)) == SHOWN


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\N{FULLWIDTH EQUALS SIGN}1"]


@pytest.fixture
def formulas(tmp_path: Path) -> Results:
    asked = Survey([QuestionFreeText(question_name="why", question_text="{{ scenario.x }}")])
    job = asked.by([{"x": text, "n": -5} for text in [*FORMULAS, "a=b", "plain"]])
    return job.by(Model("test", canned_response=lambda request: request.scenario["x"])).run(tmp_path / "f.run")


def test_formulas_are_made_inert_where_that_is_asked_for(formulas: Results, tmp_path: Path):
    with formulas as results:
        chosen = results.select("answer.why", "scenario.n")
        raw = chosen.to_csv(tmp_path / "raw.csv").read_bytes().decode()
        inert = chosen.to_csv(tmp_path / "inert.csv", escape_formulas=True).read_bytes().decode()
    expected = [*FORMULAS, "a=b", "plain"]
    assert [row[0] for row in csv.reader(io.StringIO(raw, newline=""))][1:] == expected
    rows = list(csv.reader(io.StringIO(inert, newline="")))[1:]
    assert [row[0] for row in rows] == [f"'{text}" for text in FORMULAS] + ["a=b", "plain"]
    assert {row[1] for row in rows} == {"-5"}  # a number is no formula


def test_the_command_escapes_formulas_too(formulas: Results, tmp_path: Path):
    formulas.close()
    words = ("results", "f.run", "--select", "answer.why", "--limit", "1", "--format")
    assert "'=1+1" in headrace(*words, "csv", "--escape-formulas", cwd=tmp_path).stdout
    refused = headrace(*words, "jsonl", "--escape-formulas", cwd=tmp_path)
    assert (refused.returncode, "is for CSV" in refused.stderr) == (1, True)
