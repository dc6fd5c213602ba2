"""The house stays in order: few files in a folder, few methods on a class, one name for each class and module.

The exceptions are listed by name, and each must still be one: the lists can only shrink.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import LONGEST

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headrace"
MOST_FILES = 20
MOST_METHODS = 15
# What users hold: these delegate, but each verb of theirs is a method.
PUBLIC_CLASSES = {
    "Agent",
    "AgentList",
    "Engine",
    "Job",
    "Question",
    "Results",
    "RowList",
    "Scenario",
    "ScenarioList",
    "Survey",
    "Table",
    "Tabular",
}
LARGE_CLASSES: set[str] = set()
SHARED_CLASS_NAMES: set[str] = set()
SHARED_MODULE_NAMES = {"contract", "stopping"}  # of interviews and of agents
NO_MODULES = {"agents.run", "interviews.checksum"}  # a file's name, a column


Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _definitions(path: Path) -> list[Definition]:
    """A module, its classes and functions, those inside others too; found once, for several tests ask."""
    tree = ast.parse(path.read_text("utf-8"))
    found: list[Definition] = [tree]
    inside: list[ast.AST] = [tree]
    while inside:
        for node in ast.iter_child_nodes(inside.pop()):
            if isinstance(node, ast.expr):
                continue  # holds no statements: half of the time would go into these
            inside.append(node)
            if isinstance(node, Definition):
                found.append(node)
    return found


@cache
def _modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in _modules():
        for node in _definitions(path):
            if isinstance(node, ast.ClassDef):
                yield path, node


def _functions(inside: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.iter_child_nodes(inside) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _is_public_method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    is_property = any(ast.unparse(each).startswith("property") for each in node.decorator_list)
    return not is_property and not node.name.startswith("_")


def test_no_folder_has_more_files_than_a_list_can_show():
    files = Counter(path.parent for path in _modules() if path.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): count for folder, count in files.items() if count > MOST_FILES} == {}


def test_no_internal_class_has_too_many_public_methods():
    public = {
        node.name: len({each.name for each in _functions(node) if _is_public_method(each)}) for _, node in _classes()
    }
    large = {name for name, count in public.items() if count > MOST_METHODS} - PUBLIC_CLASSES
    assert large == LARGE_CLASSES, {name: public[name] for name in large}


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path, node in _classes():
        places[node.name.lstrip("_")].append(str(path.relative_to(SOURCE)))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert set(shared) == SHARED_CLASS_NAMES, shared


def test_no_two_modules_have_one_name():
    places = defaultdict(list)
    for path in _modules():
        if path.stem not in {"__init__", "__main__"}:
            places[path.stem].append(str(path.relative_to(SOURCE)))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert set(shared) == SHARED_MODULE_NAMES, shared


def test_no_function_is_called_told():
    told = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in _modules()
        for node in _definitions(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.strip("_") == "told"
    ]
    assert told == []


def test_no_test_module_imports_another():
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text("utf-8")
        if re.search(r"\btests\.[\w.]*\btest_", text) is None:
            continue  # nothing to find: parsing all of the tests takes seconds
        names = [node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        found += [f"{path.relative_to(ROOT)}: {name}" for name in names if re.search(r"^tests\..*\btest_\w+$", name)]
    assert found == []


def test_the_tests_that_begin_first_exist():
    assert [name for name in LONGEST if not (ROOT / "tests" / name).is_file()] == []


def test_modules_that_docstrings_name_exist():
    """Written `models.endpoint.retry`, or with a name inside that module."""
    folders = sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and not path.name.startswith("_"))
    dotted = re.compile(rf"(?<![\w./<])((?:{'|'.join(folders)})(?:\.\w+)+)(?![\w(])")
    gone = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in _modules()
        for docstring in _docstrings(path)
        for name in dotted.findall(docstring)
        if name not in NO_MODULES and not _is_there(name.split("."))
    ]
    assert gone == []


def _docstrings(path: Path) -> Iterator[str]:
    for node in _definitions(path):
        yield ast.get_docstring(node) or ""


def _is_there(parts: list[str]) -> bool:
    place = SOURCE
    for number, part in enumerate(parts):
        if (place / part).is_dir():
            place /= part
        elif (place / f"{part}.py").is_file():
            rest = parts[number + 1 :]
            return not rest or rest == ["py"] or _defines(place / f"{part}.py", rest[0])
        else:
            return False
    return True


def _defines(path: Path, name: str) -> bool:
    return re.search(rf"^(?:class|def|async def) {name}\b|^{name}\b", path.read_text("utf-8"), re.MULTILINE) is not None
