import re
from pathlib import Path

import pytest

from headrace.results.columns.question_parts import PART_GROUPS, PARTS
from headrace.results.results import Results
from tests.docs.documents import DOCS, run_program

DOCUMENT = (DOCS / "results.md").read_text("utf-8")


def test_the_examples_run_and_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    program = tmp_path / "program.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)), "utf-8")
    printed = run_program(program, tmp_path)
    shown = re.findall(r"```text\n(.*?)```", DOCUMENT, re.DOTALL)[0]
    for line in shown.splitlines():
        assert line == "..." or line in printed.splitlines()
    assert "| Age | answer.mood | answer.rating |" in printed


def test_every_column_of_a_question_is_named():
    for group in PART_GROUPS:
        assert f"`{group}.q_" in DOCUMENT, group
    for part in PARTS:
        assert part.suffix in DOCUMENT, part.suffix


def test_every_verb_is_named():
    verbs = [name for name in vars(Results) if not name.startswith("_")]
    assert [name for name in verbs if not re.search(rf"\b{name}\b", DOCUMENT)] == []
