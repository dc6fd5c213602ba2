"""docs/survey.md says what is there, and its examples run."""

import re
from pathlib import Path

import headrace
from headrace.survey.questions.base import kinds_for_files
from tests.docs.documents import DOCS, code_names, run_program, sections, tables

DOCUMENT = (DOCS / "survey.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(DOCUMENT)}


def test_its_examples_run(tmp_path: Path):
    program = tmp_path / "survey.py"
    program.write_text("".join(re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)), "utf-8")
    assert run_program(program, tmp_path) == ""


def test_its_kinds_are_those_there_are_with_their_settings():
    overview, *families = tables(SECTIONS["Questions"])
    kinds = {kind.kind: kind for kind in kinds_for_files()}
    assert {code_names(row[0])[0] for row in overview} == kinds.keys()
    for kind, name, settings, _ in overview:
        assert getattr(headrace, code_names(name)[0]) is kinds[code_names(kind)[0]]
        assert set(code_names(settings)) <= set(kinds[code_names(kind)[0]].__dataclass_fields__), kind
    for name, settings, _ in (row for family in families for row in family):
        assert set(code_names(settings)) <= set(getattr(headrace, code_names(name)[0]).__dataclass_fields__), name
