import dataclasses
import re
from pathlib import Path

import headrace
from tests.docs.documents import DOCS, code_names, run_program, tables

DOCUMENT = (DOCS / "survey.md").read_text("utf-8")


def test_its_examples_run(tmp_path: Path):
    program = tmp_path / "survey.py"
    program.write_text("".join(re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)), "utf-8")
    assert run_program(program, tmp_path) == ""


def test_the_settings_of_each_kind_are_those_there_are():
    for kind, settings, _ in (row for table in tables(DOCUMENT) for row in table):
        (name,) = code_names(kind)
        fields = {field.name for field in dataclasses.fields(getattr(headrace, name))}
        assert set(code_names(settings)) <= fields, name
