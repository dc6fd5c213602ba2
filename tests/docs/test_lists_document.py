import re
from pathlib import Path

from tests.docs.documents import DOCS, run_program

DOCUMENT = (DOCS / "lists.md").read_text("utf-8")


def test_the_examples_run(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)), "utf-8")
    assert run_program(program, tmp_path) == ""
