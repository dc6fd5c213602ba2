import re
import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import MEASURES
from tests.docs.documents import ROOT, Shell, files, is_as_shown, run_program, session


def test_the_lines_that_were_promised_run_as_written(tmp_path: Path):
    assert run_program(Path(__file__).parent / "contract.py", tmp_path) == "kept\n"


def test_the_readme_s_examples_run(tmp_path: Path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 4
    program = tmp_path / "readme.py"
    program.write_text(blocks[0] + blocks[1] + "print(sum(1 for _ in job.stream('city.run')))\n", "utf-8")
    shown = run_program(program, tmp_path)
    assert "Good" in shown
    assert "400" in shown
    assert shown.endswith("2000\n")
    program.write_text(blocks[2], "utf-8")
    asked = run_program(program, tmp_path)
    assert re.search(r"Lima +1000 +1\.0 +69\n", asked), asked
    assert (tmp_path / "mood.svg").read_text("utf-8").startswith("<svg")
    assert len((tmp_path / "young.csv").read_text("utf-8").splitlines()) == 401
    program.write_text(blocks[3], "utf-8")
    assert [run_program(program, tmp_path) for _ in range(2)] == ["done\n", "done\n"]


def test_the_readme_s_commands_exist():
    commands = re.findall(r"^\$ (.+?)(?:  +#.*)?$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert commands[:3] == ["pip install .", "uv tool install .", "headrace demo"]
    scripts = [command for command in commands if command.startswith("./")]
    assert scripts == ["./scripts/demo", "./scripts/test"]
    for command in scripts:
        assert (ROOT / command).stat().st_mode & 0o111


def test_the_readme_s_session_runs_as_shown(tmp_path: Path):
    readme = (ROOT / "README.md").read_text("utf-8")
    work = tmp_path / "work"
    work.mkdir()
    for name, content in files(readme).items():
        (work / name).write_text(content, "utf-8")
    shell = Shell(tmp_path, work)
    # The README's program has written its file into the same directory before.
    program = tmp_path / "readme.py"
    program.write_text(re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0], "utf-8")
    run_program(program, work)
    typed = [command for command in session(readme) if command.words.startswith("headrace") and command.shown]
    assert len(typed) == 7
    for command in typed:
        code, printed = shell.run(command.words)
        assert code == command.exit_code, f"{command.words}\n{printed}"
        assert is_as_shown(printed, command.shown), f"$ {command.words}\n{printed}\nand not\n{command.shown}"


def test_no_message_or_document_installs_from_an_index_that_has_us_not():
    places = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    for place in places:
        assert not re.search(r"install (-U )?'?headrace", place.read_text("utf-8")), place


def test_what_the_readme_points_to_exists():
    readme = (ROOT / "README.md").read_text("utf-8")
    measures = set(re.findall(r"`\./scripts/bench (\w+)`", readme))
    assert measures
    assert measures <= set(MEASURES)
    places = set(re.findall(r"`\./scripts/test (\S+)`", readme)) | set(re.findall(r"\]\((?!http)([^)#]+)", readme))
    assert places
    for place in places:
        assert (ROOT / place).exists(), place


def test_the_demo_shows_answers_and_the_memory_line(tmp_path: Path):
    path = tmp_path / "demo.run"
    command = [sys.executable, "-m", "headrace", "demo", "--size", "100", "-o", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert ran.stderr == ""
    for shown in ("100 interviews", "The first few answers", "memory", "at most", str(path)):
        assert shown in ran.stdout
    assert path.exists()


def test_the_command_tells_a_user_s_mistake_without_a_traceback(tmp_path: Path):
    mistaken = tmp_path / "notes.txt"
    mistaken.write_text("not a run file")
    command = [sys.executable, "-m", "headrace", "demo", "--size", "5", "-o", str(mistaken)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 1
    assert "is not a run file" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert mistaken.read_text() == "not a run file"
