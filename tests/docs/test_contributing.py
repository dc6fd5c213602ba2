"""CONTRIBUTING.md is followed word for word in a copy of the source: a kind of question and a protocol are each run."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.docs.documents import ROOT, code_names, sections

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(TEXT)}
_BLOCK = re.compile(r"`(src/[\w/.]+)`:\n\n```(python|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EMAIL = """
import headrace
from headrace import Agent, AgentList, Model, QuestionEmail, Survey

assert {place!r} in headrace.__file__
asked = QuestionEmail(question_name="mail", question_text="Where can {{{{ agent.name }}}} be reached?")
people = AgentList([Agent({{"name": "Ada"}}), Agent({{"name": "Bob"}})])
job = Survey([asked]).by(people)
answered = job.by(Model("test", canned_response=" ada@example.org ")).run("good.run", progress_bar=False)
refused = job.by(Model("test", canned_response="by post")).run("bad.run", progress_bar=False)
print([result.answer["mail"] for result in answered], [failed.message for failed in refused.failed()])
print(type(Survey.load("survey.yaml").questions[0]).__name__)
"""
SURVEY_FILE = """
questions:
  - kind: email
    name: mail
    text: Where can you be reached?
"""
GENERATE = """
import headrace
from headrace import Agent, Model, QuestionFreeText, Survey

assert {place!r} in headrace.__file__
asked = QuestionFreeText(question_name="q", question_text="How are you, {{{{ agent.name }}}}?")
model = Model("llama3", service_name="ollama_native", base_url="{url}")
results = Survey([asked]).by(Agent({{"name": "Ada"}}), model).run("a.run", progress_bar=False)
print(results[0].answer["q"], results.stats().tokens, results.stats().failed)
"""


def follow(title: str, place: Path) -> None:
    """Make in a copy of the source what this section shows: whole files, and lines to add behind others."""
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    blocks = _BLOCK.findall(SECTIONS[title])
    assert blocks
    for name, kind, block in blocks:
        file = place / name
        if kind == "python":
            assert not file.exists()
            file.write_text(block, "utf-8")
        else:
            file.write_text(_with_lines_added(file.read_text("utf-8"), block), "utf-8")


def _with_lines_added(text: str, added: str) -> str:
    lines, place = text.splitlines(), 0
    for line in added.splitlines():
        if line.startswith("+"):
            lines.insert(place, line[1:])
            place += 1
        else:
            place = lines.index(line[1:], place) + 1
    return "\n".join(lines) + "\n"


def run_in(place: Path, program: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "HEADRACE_HOME": str(place / "home")}
    command = [sys.executable, "-W", "error", "-c", program]
    ran = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


class Generating(BaseHTTPRequestHandler):
    """As little of Ollama as its `generate` needs."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert (self.path, asked["model"]) == ("/api/generate", "llama3")
        said = {"response": f"You said: {asked['prompt'].splitlines()[0]}", "prompt_eval_count": 9, "eval_count": 4}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args  # standard error is for errors


@contextmanager
def generating() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Generating) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/api"
        finally:
            server.shutdown()
            thread.join()


def test_a_kind_of_question_is_added_as_written(tmp_path: Path):
    follow("Add a kind of question", tmp_path)
    (tmp_path / "survey.yaml").write_text(SURVEY_FILE)
    answers, kind = run_in(tmp_path, EMAIL.format(place=str(tmp_path)))
    assert answers.startswith("['ada@example.org', 'ada@example.org']")
    assert answers.count("'by post' is not an e-mail address") == 2
    assert kind == "QuestionEmail"


def test_a_protocol_is_added_as_written(tmp_path: Path):
    follow("Add a protocol", tmp_path)
    with generating() as url:
        (shown,) = run_in(tmp_path, GENERATE.format(place=str(tmp_path), url=url))
    assert shown == "You said: How are you, Ada? 13 0"


def test_what_is_added_passes_the_linter(tmp_path: Path):
    for title in ("Add a kind of question", "Add a protocol"):
        shutil.rmtree(tmp_path / "src", ignore_errors=True)
        follow(title, tmp_path)
        files = [str(tmp_path / name) for name, _, _ in _BLOCK.findall(SECTIONS[title])]
        ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--config", str(ROOT / "pyproject.toml"), *files]
        ran = subprocess.run(ruff, capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 0, ran.stdout


def test_the_files_it_names_exist():
    made = {name for name, kind, _ in _BLOCK.findall(TEXT) if kind == "python"}
    named = [name for name in code_names(TEXT) if re.fullmatch(r"(src|tests|docs|scripts|benchmarks)/[\w/.]*", name)]
    named += re.findall(r"\]\((?!http)([^)#]+)", TEXT)
    assert len(named) > 20
    for name in named:
        assert name in made or (ROOT / name).exists(), name
