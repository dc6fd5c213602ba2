import re
from pathlib import Path

from headrace import edsl_names
from tests.docs.documents import DOCS, code_names, run_program, sections, tables

DOCUMENT = (DOCS / "jobs.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(DOCUMENT)}


def test_the_examples_run(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)), "utf-8")
    assert run_program(program, tmp_path) == ""


def test_every_parameter_of_edsls_run_is_shown_with_its_meaning_here():
    shown = {code_names(name)[0]: text for name, text in tables(SECTIONS["Run it"])[-1]}
    assert list(shown) == [
        *edsl_names.SAME_PARAMETERS,
        *edsl_names.RENAMED_PARAMETERS,
        *edsl_names.PARAMETERS_WITHOUT_EFFECT,
    ]
    for name, ours in edsl_names.RENAMED_PARAMETERS.items():
        assert f"another name for `{ours}`" in shown[name]
    for name, parameter in edsl_names.PARAMETERS_WITHOUT_EFFECT.items():
        assert shown[name].startswith("no effect")
        assert shown[name].endswith(parameter.here)
        assert (parameter.always is None) == ("is always so" not in shown[name])
