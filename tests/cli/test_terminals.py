import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, Results, ScenarioList, Survey
from headrace.cli.status.spending_text import spent_text
from tests.cli.terminals import HEADRACE, environment, headrace, in_terminal

pytestmark = pytest.mark.usefixtures("forks")
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
COLOURS = re.compile(r"\x1b\[[0-9;]*(3|4|9)\d[;m]")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run file whose people and answers are of many scripts and manners."""
    path = tmp_path_factory.mktemp("told") / "told.run"
    asked = Survey([QuestionFreeText(question_name="why", question_text="Why?")])
    people = AgentList(Agent({"note": "a\tb\x1b[2Jc" if i else "x" * 300}, name=f"Zoë {i}") for i in range(60))
    cities = ScenarioList.from_list("city", ["東京"])
    asked.by(people, cities, Model("test", canned_response="Здравствуйте, " * 5 + "[bold]")).run(path).close()
    return path


@pytest.mark.parametrize("words", ["demo --size 60", "doctor", "run --help", "results {}"])
def test_no_line_is_wider_than_the_terminal(words: str, told: Path):
    shown = in_terminal(*words.format(told).split(), columns=40)
    assert shown.returncode == 0
    lines = shown.text.partition("run file:")[0].splitlines()
    # What is there to be copied stays whole: paths, and names of packages that fill a line.
    assert [line for line in lines if len(line) > 40 and "/" not in line and max(map(len, line.split())) < 30] == []


def test_columns_that_do_not_fit_become_a_block_of_lines_a_row(told: Path):
    words = ("results", str(told), "--select", "agent.agent_name,scenario.city,answer.why", "--limit", "2")
    narrow = in_terminal(*words, columns=40).lines
    assert narrow[0] == "[1]"
    assert "agent.agent_name: Zoë 0" in narrow
    wide = in_terminal(*words, columns=120).lines
    assert wide[0].split() == ["agent.agent_name", "scenario.city", "answer.why"]
    assert [line.count("[bold]") for line in wide[2:4]] == [1, 1]


def test_an_answer_cannot_steer_the_terminal(told: Path):
    shown = in_terminal("results", str(told), "--select", "agent.note", "--limit", "2", columns=80)
    assert "\x1b[2J" not in shown.raw
    assert r"a b\x1b[2Jc" in shown.text


def test_a_table_ends_with_how_many_more_there_are(told: Path):
    ended = headrace("results", str(told), "--select", "agent.agent_name")
    assert ended.stdout.endswith("and 40 more\n")


def test_colours_are_for_terminals_and_not_with_no_color():
    assert COLOURS.search(in_terminal("demo", "--size", "6").raw)
    assert COLOURS.search(in_terminal("demo", "--size", "6", NO_COLOR="1").raw) is None


@pytest.mark.parametrize("locale", [ASCII, {"PYTHONIOENCODING": "latin-1"}])
def test_a_locale_without_utf_8_is_no_error(told: Path, locale: dict[str, str]):
    for words in (("demo", "--size", "6"), ("results", str(told), "--limit", "2")):
        ended = headrace(*words, **locale)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.replace("Zoë", "").isascii()


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_data_for_programs_is_utf_8_in_any_locale(told: Path, layout: str):
    words = ("results", str(told), "--select", "scenario.city", "--limit", "1", "--format", layout)
    assert "東京" in headrace(*words, **ASCII).stdout


@pytest.mark.parametrize("words", ["demo --size 6", "results {} --format csv", "--help"])
def test_a_pipe_that_closes_early_is_no_failure(told: Path, words: str):
    command = f"{' '.join(HEADRACE)} {words.format(told)} | head -1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], env=environment(), capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.count(b"\n") == 1


def damaged_copy(path: Path, directory: Path) -> Path:
    damaged = Path(shutil.copy(path, directory / "damaged.run"))
    with closing(sqlite3.connect(damaged)) as connection:
        connection.execute("DELETE FROM details WHERE ordinal = 9")
        connection.commit()
    return damaged


def into_a_closed_pipe(*words: str, **settings: str) -> "subprocess.CompletedProcess[bytes]":
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        command = [*HEADRACE, *words]
        return subprocess.run(
            command, env=environment(**settings), stdout=pipe, stderr=subprocess.PIPE, check=False, timeout=60
        )


buffered_or_not = pytest.mark.parametrize("settings", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])


@buffered_or_not
def test_a_pipe_that_is_closed_from_the_start_is_no_failure(told: Path, settings: dict[str, str]):
    for words in (("status", str(told)), ("--version",)):
        ended = into_a_closed_pipe(*words, **settings)
        assert (ended.returncode, ended.stderr) == (0, b"")


@buffered_or_not
def test_a_pipe_that_is_closed_does_not_make_a_failure_a_success(told: Path, tmp_path: Path, settings: dict[str, str]):
    damaged, reviews = damaged_copy(told, tmp_path), tmp_path / "reviews.jsonl"
    reviews.write_text('{"text": "good"}\n')
    failing = ("map", "{{ text }}", "--data", str(reviews), "--model", "test,canned_response=", "--no-cache")
    for words, code in ((("verify", str(damaged)), 1), ((*failing, "-o", str(tmp_path / "labels.run")), 3)):
        ended = into_a_closed_pipe(*words, **settings)
        assert (ended.returncode, ended.stderr) == (code, b"")


def test_the_page_of_a_run_stays_though_nobody_reads_what_is_printed(tmp_path: Path):
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text('{"text": "good"}\n')
    ours, theirs = pty.openpty()
    reading, writing = os.pipe()
    os.close(reading)
    words = ("map", "{{ text }}", "--data", str(reviews), "--model", "test", "-o", str(tmp_path / "a.run"), "--view")
    started = subprocess.Popen(
        [*HEADRACE, *words], stdin=theirs, stdout=writing, stderr=theirs, env=environment(PYTHONUNBUFFERED="1")
    )
    os.close(theirs)
    os.close(writing)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        said = b""
        while b"the page stays until Ctrl-C" not in said:
            said += terminal.read(4096)
        started.send_signal(signal.SIGINT)
        assert started.wait(60) == 0


def test_ctrl_c_says_what_is_saved_and_how_to_go_on(headrace_home: Path):
    process = subprocess.Popen(
        [*HEADRACE, "demo", "--size", "100000"], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while process.poll() is None and not (headrace_home / "runs" / "demo.run").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.fullmatch(
        rb"stopping.* again to stop now\nStopped\. .* interviews are saved in .*; go on with: .* resume .*\n", told
    )


def test_shells_complete_our_commands():
    script = subprocess.run(
        ["bash", "-c", f"{' '.join(HEADRACE)} --show-completion bash; true"],
        env=environment(), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "complete -o default -F _headrace_completion headrace" in script.stdout
    asked = headrace(_HEADRACE_COMPLETE="complete_bash", COMP_WORDS="headrace r", COMP_CWORD="1")
    assert asked.stdout.split() == ["run", "resume", "results", "runs"]


def test_answers_from_the_cache_are_told(told: Path):
    with Results.open(told) as results:
        stats = results.stats()
    assert spent_text(stats) == f"60 calls, {stats.tokens:,} tokens"
    assert spent_text(replace(stats, cache_hits=1200)).endswith(" tokens, 1,200 answers from the cache")


@pytest.mark.parametrize("columns", [80, 50])
def test_every_command_s_summary_is_whole(columns: int):
    listed = in_terminal("--help", columns=columns).text.partition("Commands:")[2]
    assert len(listed.split("\n")) > 10
    assert "..." not in listed
    assert "…" not in listed


def test_help_waits_for_nothing_heavy():
    program = """
import json, sys
from headrace.cli.main import main
try:
    main()
finally:
    heavy = {"aiohttp", "apsw", "asyncio", "minijinja", "msgspec", "rich", "yaml", "zstandard"}
    print(json.dumps(sorted(heavy & set(sys.modules))), file=sys.stderr)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, "--help"], env=environment(), capture_output=True, text=True, check=False
    )
    assert json.loads(ended.stderr) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("layout", ["table", "csv", "jsonl"])
def test_a_full_disk_behind_the_output_is_told_in_words(told: Path, layout: str):
    with Path("/dev/full").open("w") as full:
        command = [*HEADRACE, "results", str(told), "--format", layout]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment())
    assert ended.returncode == 1
    assert ended.stderr == "headrace: the output cannot be written: No space left on device. Make room.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_damage_that_a_full_disk_keeps_from_being_told_is_no_success(told: Path, tmp_path: Path):
    damaged = damaged_copy(told, tmp_path)
    with Path("/dev/full").open("w") as full:
        command = [*HEADRACE, "verify", str(damaged)]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment())
    assert ended.returncode == 1
    assert ended.stderr == "headrace: the output cannot be written: No space left on device. Make room.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@buffered_or_not
def test_a_full_disk_behind_the_output_changes_no_exit_code(tmp_path: Path, settings: dict[str, str]):
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text('{"text": "good"}\n')
    failing = ("map", "{{ text }}", "--data", str(reviews), "--model", "test,canned_response=", "--no-cache")
    for words, code in ((("--version",), 1), (("--help",), 1), ((*failing, "-o", str(tmp_path / "labels.run")), 3)):
        with Path("/dev/full").open("w") as full:
            command = [*HEADRACE, *words]
            ended = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment(**settings), check=False
            )
        assert ended.returncode == code
        assert ended.stderr == "headrace: the output cannot be written: No space left on device. Make room.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_both_streams_changes_no_exit_code(told: Path, tmp_path: Path):
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text('{"text": "good"}\n')
    failing = ("map", "{{ text }}", "--data", str(reviews), "--model", "test,canned_response=", "--no-cache")
    for words, code in ((("verify", str(told)), 1), ((*failing, "-o", str(tmp_path / "labels.run")), 3)):
        with Path("/dev/full").open("w") as full:
            command = [*HEADRACE, *words]
            ended = subprocess.run(command, stdout=full, stderr=full, check=False, env=environment(), timeout=60)
        assert ended.returncode == code


def test_a_directory_that_was_removed_under_us_is_no_failure(told: Path, tmp_path: Path):
    here = tmp_path / "here"
    here.mkdir()
    command = f'rmdir "{here}" && {" ".join(HEADRACE)} resume "{told}"'
    ended = subprocess.run(command, shell=True, cwd=here, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"results {told}" in ended.stdout
