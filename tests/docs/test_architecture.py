import ast
import re
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, code_names, sections, tables

SOURCE = ROOT / "src" / "headrace"
MAP = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
STEPS = re.findall(r"`([\w/]+\.py): ([\w.]+)`", MAP)


def test_the_map_is_short():
    assert len(MAP.splitlines()) <= 130


def test_the_map_lists_every_folder():
    (rows,) = tables(next(section.text for section in sections(MAP) if section.title == "The folders"))
    listed = [name for row in rows for name in code_names(row[0])]
    folders = {str(found.parent.relative_to(SOURCE)) + "/" for found in SOURCE.rglob("*/__init__.py")}
    modules = {found.stem for found in SOURCE.glob("[!_]*.py")}
    # Small folders of the command line are named in the row of `cli/`.
    assert set(listed) == {name for name in folders if not name.startswith("cli/") or name == "cli/"} | modules


def test_the_walks_are_there():
    walks = {section.title: section.text for section in sections(MAP)}
    for title, steps in (("One interview", 8), ("One query", 6), ("One agent run in a worker", 8)):
        assert len(re.findall(r"^\d+\. .*`[\w/]+\.py: [\w.]+`", walks[title], re.MULTILINE)) >= steps


@pytest.mark.parametrize(("file", "name"), sorted(set(STEPS)))
def test_what_a_walk_names_exists(file: str, name: str):
    found: ast.AST = ast.parse((SOURCE / file).read_text("utf-8"))
    for part in name.split("."):
        found = _definition(found, part, file)


def _definition(inside: ast.AST, name: str, file: str) -> ast.AST:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.iter_child_nodes(inside):
        if isinstance(node, definitions) and node.name == name:
            return node
    raise AssertionError(f"ARCHITECTURE.md: {Path(file)} has no {name}")
