import re
from pathlib import Path

from tests.docs.documents import DOCS, run_program
from tests.pictures import png


def test_the_programs_run_as_written(tmp_path: Path):
    first, *others = re.findall(r"```python\n(.*?)```", (DOCS / "files.md").read_text("utf-8"), re.DOTALL)
    png(tmp_path / "cat.png")
    png(tmp_path / "dog.png", shade=9)
    (tmp_path / "pets").mkdir()
    png(tmp_path / "pets" / "tom.png")
    (tmp_path / "pets.csv").write_text("photo\ncat.png\n")
    program = tmp_path / "files.py"
    program.write_text(first, "utf-8")
    shown = run_program(program, tmp_path)
    assert re.search(r" cat\.png\n(.*\n)+.* dog\.png\n", shown), shown
    for each in others:
        program.write_text(each, "utf-8")
        run_program(program, tmp_path)
