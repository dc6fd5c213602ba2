"""Functions that travel to another process by name. Covers: making a reference, and finding the function again.

A script's `__main__` is imported again under another name, as multiprocessing does; on another host, where its path is
not, from the working directory. A function that has no file, or that cannot be found by its name, is refused before
anything starts. Does not cover: functions as part of a plan's
identity (survey.function_reference).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import runpy
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.errors import HeadraceError, InvalidInput
from headrace.workers.wire import FunctionReference

SCRIPT_NAME = "__mp_main__"  # what multiprocessing calls it: guards and pickles written for that work here too


class NotOnThisHost(InvalidInput):
    """The file of a function is on the controller's host, and not here."""


def refer_to(function: Callable[..., Any]) -> FunctionReference:
    """The reference that `find_function` understands in a worker; refused where it would not."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    qualname = getattr(function, "__qualname__", "")
    told = f"{qualname or type(function).__name__!r} cannot be run in a process of its own:"
    if module is None or not qualname or "<" in qualname:
        raise InvalidInput(
            f"{told} a process finds a function by its module and name, and this one has none.",
            fix="Define it with `def` at the top of a .py file, or run it with isolation='inline'.",
        )
    name, file = _home(module)
    if file is None:
        raise InvalidInput(
            f"{told} it was defined in a notebook cell, a prompt or `python -c`, not in a file.",
            fix="Move it into a .py file and import it from there, or run it with isolation='inline'.",
        )
    if inspect.ismethod(function):
        raise InvalidInput(
            f"{told} it is a method, and the object that it belongs to does not travel.",
            fix="Define a function at the top of a .py file, and make the object in it.",
        )
    if _attribute(module, qualname) is not function:
        raise InvalidInput(
            f"{told} {module.__name__}.{qualname} is something else by now.",
            fix="Keep the name for the function that is submitted.",
        )
    return FunctionReference(name, qualname, str(file), is_script=name == "__main__")


def find_function(reference: FunctionReference) -> Callable[..., Any]:
    module = _script(reference.file) if reference.is_script else _module(reference.module, reference.file)
    found = _attribute(module, reference.qualname)
    if found is None:
        raise InvalidInput(
            f"{reference.file} has no {reference.qualname} when a worker imports it.",
            fix='Define it at the top of the file, not under `if __name__ == "__main__":`.',
        )
    return found


def find_at_home(reference: FunctionReference) -> Callable[..., Any]:
    """The same in the process whose script it is: that must not be imported again."""
    script = sys.modules["__main__"]
    is_ours = reference.is_script and _home(script)[1] == Path(reference.file)
    return _attribute(script, reference.qualname) if is_ours else find_function(reference)


@functools.cache  # looks at the disk; bounded by the modules whose functions are submitted
def _home(module: ModuleType) -> tuple[str, Path | None]:
    name, spec = module.__name__, getattr(module, "__spec__", None)
    if name in {"__main__", SCRIPT_NAME} and spec is not None:  # python -m package.module
        name = spec.name
    written = getattr(module, "__file__", None)
    file = Path(written).absolute() if written else None
    is_there = file is not None and (file.is_file() or module in _imported)
    return ("__main__" if name == SCRIPT_NAME else name), (file if is_there else None)


def _attribute(module: ModuleType, qualname: str) -> Any:
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def script_starts_again() -> HeadraceError:
    return HeadraceError(
        "A worker that imports the script has started the script's work again.",
        fix='Put what the script does under `if __name__ == "__main__":`.',
    )


def has_imported_script() -> bool:
    """Whether this process is a worker that has imported the script, or is doing so; children that multiprocessing
    spawns have such a module too, and may do what they like.
    """
    return sys.modules["__main__"] in _imported


_imported: list[ModuleType] = []  # the script, in a worker


def _script(file: str) -> ModuleType:
    known = sys.modules.get(SCRIPT_NAME)
    if known is not None and getattr(known, "__file__", None) == file:
        return known
    found = _on_this_host(Path(file))
    module = ModuleType(SCRIPT_NAME)
    module.__file__ = file  # as the controller knows it: references to its functions go back there
    sys.modules["__main__"] = sys.modules[SCRIPT_NAME] = module
    _imported[:] = [module]
    try:
        module.__dict__.update(runpy.run_path(str(found), run_name=SCRIPT_NAME), __file__=file)
    except RuntimeError as error:
        if "running event loop" not in str(error):
            raise
        raise script_starts_again() from None
    return module


def _on_this_host(file: Path) -> Path:
    """The file, or on a host where its path is not, the one of its name in the working directory: Ray brings it there
    with `runtime_env`.
    """
    for found in (file, Path.cwd() / file.name):
        if found.is_file():
            return found
    raise NotOnThisHost(
        f"{file} is not on {socket.gethostname()}, where a worker needs it.",
        fix="Put the function into a module that is installed there, or have Ray bring the program: run it in its own"
        ' directory, with Ray(..., runtime_env={"working_dir": "."}).',
    )


def _module(name: str, file: str) -> ModuleType:
    """By name; from its file where the path does not lead to it."""
    known = sys.modules.get(name)
    if known is not None:
        return known
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise  # the module was found, something that it imports was not
    spec = importlib.util.spec_from_file_location(name, _on_this_host(Path(file)))
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{name} cannot be imported from {file}", name=name)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
