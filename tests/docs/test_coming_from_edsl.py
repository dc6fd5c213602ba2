import json
import re
from pathlib import Path

from tests.conformance.conformance_values import EDSL_VERSION, NOT_YET, VALUES
from tests.docs.documents import DOCS, ROOT, code_names, run_program, sections, tables

DOCUMENT = (DOCS / "coming-from-edsl.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(DOCUMENT)}
KEPT = json.loads(VALUES.read_text("utf-8"))
DIFFERENT = {name for name, kept in KEPT.items() if "reason" in kept}


def test_the_examples_run(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)), "utf-8")
    assert run_program(program, tmp_path) == ""


def test_the_table_has_every_program_that_gives_another_value():
    (table,) = tables(SECTIONS["What differs, and why"])
    told = [name for row in table for name in code_names(row[-1])]
    assert sorted(told) == sorted(DIFFERENT)


def test_the_numbers_are_those_of_the_conformance_suite():
    programs, same, different = map(int, re.findall(r"\b(\d+)(?: programs| give )", SECTIONS[""]))
    assert (programs, same, different) == (len(KEPT), len(KEPT) - len(DIFFERENT), len(DIFFERENT))
    assert f"EDSL {EDSL_VERSION}" in SECTIONS[""]


def test_the_readme_claims_what_the_conformance_suite_shows():
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    (claimed,) = re.findall(r"(\d+) programs .{0,80}EDSL", readme)
    assert int(claimed) == len(KEPT) - len(NOT_YET)
