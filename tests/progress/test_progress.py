import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from headrace import Agent, AgentList, Job, Model, QuestionFreeText, Survey
from headrace.errors import OptionError
from headrace.limits import RunOptions
from headrace.progress.pace import Pace, Progress
from headrace.progress.refresh import Display
from headrace.progress.terminal_line import TerminalLine
from headrace.progress.text import log_line, one_line, plain, several_lines
from headrace.results.reading import stages
from headrace.units import format_count, format_short_duration

LARGE = Progress(
    done=900_000,
    total=1_234_567,
    reused=800_000,
    failed=12,
    in_flight=200,
    memory_bytes=45_300_000,
    budget_bytes=512_000_000,
    input_tokens=12_345_678,
    output_tokens=1_234_567,
    cost=12.34,
)
PROGRAM = """
from headrace import Agent, AgentList, Model, QuestionFreeText, Survey
asked = Survey([QuestionFreeText(question_name='q', question_text='Well?')])
agents = AgentList(Agent({'n': n}) for n in range(60))
job = asked.by(agents, Model('test', canned_response='x', latency_s=LATENCY))
"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def paced(*readings: tuple[float, int]) -> tuple[Progress, Pace]:
    pace = Pace()
    for now_s, done in readings:
        pace.read(replace(LARGE, done=done), now_s)
    return replace(LARGE, done=readings[-1][1]), pace


def on_terminal(
    program: str,
    directory: Path,
    columns: int,
    *,
    latency_s: float = 0.01,
    stdout: int = subprocess.PIPE,
    **environment: str,
) -> tuple[str, str]:
    """What a program shows on a terminal of this width, and what it prints elsewhere."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []
    reading = threading.Thread(target=_read_all, args=(screen, shown))
    reading.start()
    try:
        command = [sys.executable, "-W", "error", "-c", PROGRAM.replace("LATENCY", str(latency_s)) + program]
        ran = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=terminal if stdout == subprocess.STDOUT else stdout,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm", **environment},
            check=False,
            timeout=60,
        )
    finally:
        os.close(terminal)
        reading.join()
        os.close(screen)
    text = b"".join(shown).decode()
    assert ran.returncode == 0, text
    return text, (ran.stdout or b"").decode()


def _read_all(screen: int, shown: list[bytes]) -> None:
    while True:
        try:
            shown.append(os.read(screen, 65_536))
        except OSError:  # nobody has the terminal open any more
            return


def drawings(shown: str) -> list[str]:
    """The texts drawn over one another on one line."""
    return [drawn for drawn in re.split(r"[\r\n]+", ESCAPE.sub("", shown)) if drawn]


# --- figures


def test_the_pace_is_that_of_the_last_seconds():
    slow_then_fast = [(float(second), second) for second in range(100)]
    slow_then_fast += [(100.0 + second, 100 + 50 * second) for second in range(31)]
    progress, pace = paced(*slow_then_fast)
    assert pace.recent_per_s == pytest.approx(50, rel=0.05)
    assert pace.overall_per_s == pytest.approx(1600 / 130, rel=0.05)
    assert pace.left_s(progress) == pytest.approx((LARGE.total - 1600) / 50, rel=0.05)


def test_where_nothing_came_lately_the_time_left_follows_from_the_whole_run():
    progress, pace = paced(*((float(second), min(second, 10) * 100) for second in range(100)))
    assert pace.recent_per_s == 0
    assert pace.left_s(progress) == pytest.approx((LARGE.total - 1000) / (1000 / 99), rel=0.01)


def test_a_pace_of_any_length_holds_a_few_samples():
    _, pace = paced(*((second / 10, second) for second in range(10_000)))
    assert len(pace._samples) < 40
    assert pace.recent_per_s == pytest.approx(10, rel=0.01)


def test_nothing_is_foretold_from_one_reading():
    progress, pace = paced((0.0, 900_000))
    assert "ETA ?" in plain(one_line(progress, pace, 120, is_ascii=False))


def test_a_narrow_line_has_the_essentials_and_a_wide_one_everything():
    progress, pace = paced((0.0, 895_000), (10.0, 900_000))
    narrow, usual, wide = (plain(one_line(progress, pace, columns - 1, is_ascii=False)) for columns in (40, 80, 120))
    assert narrow.endswith("  900,000/1,234,567  ETA 11m10s")
    for told in ("12 failed", "45/512 MB", "500/s", "200 in flight"):
        assert told in usual
    for told in ("800k reused", "12.3M+1.23M tok", "$12.34", "45/512 MB"):
        assert told in wide


@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("cost", [None, 0.0, 1_234_567.0])
def test_no_line_is_wider_than_it_may_be(cost: float | None, is_ascii: bool):
    progress, pace = paced((0.0, 0), (7.0, 900_000))
    progress = replace(progress, cost=cost, failed=900_000, memory_bytes=999_400_000_000)
    for width in range(200):
        line = plain(one_line(progress, pace, width, is_ascii=is_ascii))
        assert len(line) <= width
        assert line.isascii() or not is_ascii


def test_a_cost_that_is_not_known_is_not_told():
    progress, pace = paced((0.0, 0), (7.0, 900_000))
    assert "$" not in log_line(replace(progress, cost=None), pace)
    assert "$0.00" in log_line(replace(progress, cost=0.0), pace)


def test_several_lines_have_a_bar_for_memory_too():
    progress, pace = paced((0.0, 0), (7.0, 900_000))
    bar, pace_line, tokens, memory = map(plain, several_lines(progress, pace, 80, is_ascii=True))
    assert re.fullmatch(r"#+-+ +73%  +900,000/1,234,567", bar)
    assert "in flight" in pace_line
    assert tokens == "12.3M+1.23M tok  $12.34"
    assert re.fullmatch(r"#+-+ +9%  45/512 MB memory", memory)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (7, "7"), (9.294, "9.29"), (999, "999"), (999.7, "1.00k"), (1000, "1.00k"), (12_345, "12.3k"),
     (999_600, "1.00M"), (123_456_789, "123M"), (5e15, "5,000.0T")],
)  # fmt: skip
def test_counts_are_told_in_three_figures(count: float, text: str):
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.9, "59s"), (75.2, "1m15s"), (3600, "1h00m"), (90_000, "1d01h"), (-3, "0s")]
)
def test_durations_are_told_in_two_units(seconds: float, text: str):
    assert format_short_duration(seconds) == text


# --- how often


class Paper:
    every_s, window_s = 0.1, 15.0

    def __init__(self, fails_at: int | None = None) -> None:
        self.drawn: list[int] = []
        self.closed = 0
        self._fails_at = fails_at

    def draw(self, progress: Progress, pace: Pace) -> None:
        if progress.done == self._fails_at:
            raise OSError("the terminal is gone")
        self.drawn.append(progress.done)

    def close(self) -> None:
        self.closed += 1


def test_however_often_it_is_called_it_draws_ten_times_a_second_at_most():
    paper, now_s = Paper(), iter(range(1_000_000))
    display = Display(paper, clock=lambda: next(now_s) / 1000)
    for done in range(5_001):
        display.show(replace(LARGE, done=done))
    display.close(replace(LARGE, done=6_000))
    assert 45 <= len(paper.drawn) <= 52
    assert paper.drawn[-1] == 6_000
    assert paper.closed == 1
    assert TerminalLine.every_s >= 0.1


def test_a_terminal_that_goes_away_ends_the_drawing_and_nothing_else():
    paper, now_s = Paper(fails_at=3), iter(range(100))
    display = Display(paper, clock=lambda: float(next(now_s)))
    for done in range(10):
        display.show(replace(LARGE, done=done))
    display.close(LARGE)
    assert (paper.drawn, paper.closed) == ([0, 1, 2], 1)


# --- on terminals


@pytest.mark.parametrize("columns", [40, 100])
def test_progress_is_one_line_that_never_wraps(tmp_path: Path, columns: int):
    program = "job.run('a.run', progress_bar=True, concurrency=10)"
    shown, _ = on_terminal(program, tmp_path, columns, latency_s=0.15, COLUMNS="300")
    drawn = drawings(shown)
    assert len(drawn) >= 4
    assert all("/60" in text and len(text) < columns for text in drawn)
    assert "60/60" in drawn[-1]
    assert shown.rstrip("\x1b[?25h").count("\n") == 1
    assert "\n" not in shown[: shown.rindex("60/60")]
    assert "━" in shown or columns < 100


def test_a_program_at_a_terminal_shows_progress_unless_it_says_no(tmp_path: Path):
    shown, _ = on_terminal("job.run('a.run', concurrency=60)", tmp_path, 100)
    assert "60/60" in drawings(shown)[-1]
    assert on_terminal("job.run('b.run', progress_bar=False, concurrency=60)", tmp_path, 100)[0] == ""
    assert on_terminal("job.run('c.run', concurrency=60)", tmp_path, 100, TERM="dumb")[0] == ""


def test_a_terminal_without_utf_8_and_colours_gets_plain_characters(tmp_path: Path):
    plain_one = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1"}
    shown, _ = on_terminal("job.run('a.run', progress_bar='lines')", tmp_path, 100, **plain_one)
    assert shown.isascii()
    assert re.search(r"#+ .*100%  60/60", ESCAPE.sub("", shown))
    assert not re.search(r"\x1b\[3\dm", shown)


def test_what_a_program_prints_meanwhile_goes_where_it_was_sent(tmp_path: Path):
    program = "job.run('a.run', progress_bar=True, concurrency=30, on_result=lambda r: print('answer', r.answer['q']))"
    shown, printed = on_terminal(program, tmp_path, 100)
    assert printed == "answer x\n" * 60
    assert "60/60" in shown
    assert "answer" not in shown


def test_what_a_program_prints_on_the_same_terminal_stands_above_the_line(tmp_path: Path):
    program = "job.run('a.run', progress_bar=True, concurrency=30, on_result=lambda r: print('answer', r.answer['q']))"
    shown, _ = on_terminal(program, tmp_path, 100, stdout=subprocess.STDOUT)
    assert drawings(shown).count("answer x") == 60
    assert "60/60" in drawings(shown)[-1]


def test_a_terminal_that_cannot_move_its_cursor_gets_lines_of_a_log(tmp_path: Path):
    shown, _ = on_terminal("job.run('a.run', progress_bar=True, concurrency=60)", tmp_path, 100, TERM="dumb")
    assert "\x1b" not in shown
    assert [re.search(r"\d+/60", line)[0] for line in shown.splitlines()] == ["0/60", "60/60"]


def test_only_a_log_is_written_where_there_is_no_terminal(tmp_path: Path):
    program = "job.run('a.run', progress_bar=True); job.run('b.run', progress_bar='lines'); job.run('c.run')\n"
    program += "job.run('d.run', progress_bar='log')\n"
    command = [sys.executable, "-W", "error", "-c", PROGRAM.replace("LATENCY", "0.01") + program]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == ""
    first, last = ran.stderr.splitlines()
    assert re.fullmatch(r"[-\d]+ [:\d]+  headrace: 0\.0%  +0/60  .*", first)
    assert re.search(r"headrace: 100\.0%  60/60  in \d+s .*\+60 tok  \$0\.00  \d+/\d+ MB$", last)


# --- options


@pytest.mark.parametrize("value", ["line", 1, 0, "", "Log", []])
def test_a_progress_bar_that_is_not_known_is_refused(value: object):
    with pytest.raises(OptionError, match="one line"):
        RunOptions(progress_bar=value)  # pyright: ignore[reportArgumentType]


# --- what shows itself in a notebook


def job_of(count: int) -> Job:
    asked = Survey([QuestionFreeText(question_name="q", question_text="Why <i>{{ agent.n }}</i>?")])
    return asked.by(AgentList(Agent({"n": n, "note": "<script>"}) for n in range(count)))


def test_a_job_shows_a_page_and_escapes_everything():
    without, whole = job_of(5_000), job_of(5_000).by(Model("test", canned_response="x", secret="key"))
    assert "no model yet" in without._repr_html_()
    html = whole._repr_html_()
    assert "5,000 interviews" in html
    assert "the first 10 of 5,000 agents" in html
    assert html.count("&lt;script&gt;") == 10
    assert "<script>" not in html
    assert "<i>" not in html
    assert "key" not in html


def test_a_list_whose_file_is_gone_says_so_in_a_notebook(tmp_path: Path):
    path = tmp_path / "people.csv"
    path.write_text("n\n1\n")
    people = AgentList.from_csv(path)
    path.unlink()
    assert "cannot be read" in people._repr_html_()


def test_results_show_themselves_by_reading_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    results = job_of(500).by(Model("test", canned_response="x")).run(tmp_path / "a.run")
    read: list[int] = []
    fetch = stages.fetch

    def counted(*given: object) -> object:
        page, is_cut = fetch(*given)  # pyright: ignore[reportArgumentType]
        read.append(len(page))
        return page, is_cut

    monkeypatch.setattr(stages, "fetch", counted)
    assert "and 490 more" in results._repr_html_()
    assert "<td>" in results.filter("agent.n > 100").sort_by("agent.n")._repr_html_()
    assert read == [11, 11]  # one more tells whether there are more
