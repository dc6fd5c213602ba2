"""Runs conformance programs in this process, each in a directory of its own, and writes what they leave in `value`.

`python runner.py <package> <programs> <outcomes.json>`: <package> is "headrace" or "edsl", <programs> a directory. A
program is written for EDSL; for Headrace its import is changed, and nothing else. Needs the standard library only,
since EDSL's own Python runs it too. Does not cover: comparing (test_conformance.py), or keeping EDSL's values
(scripts/edsl_values.py).
"""

import contextlib
import io
import json
import os
import re
import runpy
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

_IMPORT = re.compile(r"^(from|import) edsl\b", re.MULTILINE)
_MOST_S = 60


def main() -> None:
    package, programs, outcomes = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
    chosen = set(sys.argv[4:])
    if package == "edsl":
        _keep_edsl_local()
    signal.signal(signal.SIGALRM, _too_slow)
    found = {}
    for program in sorted(programs.glob("*.py")):
        if not chosen or program.stem in chosen:
            found[program.stem] = _run(program, package)
            outcomes.write_text(json.dumps(found, indent=1, sort_keys=True), "utf-8")
    os._exit(0)  # EDSL leaves threads behind that would hold the process


def _run(program: Path, package: str) -> dict:
    """What the program leaves in `value`, or the last line of its error."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        place = Path(directory)
        written = place / program.name
        written.write_text(_IMPORT.sub(rf"\1 {package}", program.read_text("utf-8")), "utf-8")
        os.chdir(place)
        os.environ["HEADRACE_HOME"] = str(place / "home")  # a program that was run before would be resumed
        printed = io.StringIO()
        signal.alarm(_MOST_S)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return {"value": json.loads(json.dumps(runpy.run_path(str(written))["value"], default=_refuse))}
        except BaseException as error:  # noqa: BLE001 - whatever stops a program is its outcome
            trail = traceback.format_exc().replace(directory, "")
            return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:400], "trail": trail[-3000:]}
        finally:
            signal.alarm(0)
            os.chdir(Path(__file__).parent)


def _refuse(value: object) -> None:
    raise TypeError(f"value holds {type(value).__module__}.{type(value).__qualname__}, which is not JSON")


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"the program took more than {_MOST_S} s")


def _keep_edsl_local() -> None:
    """Let `run()` stay on this machine: EDSL's users have an account with a service, and this process has none."""
    from edsl import Cache, Jobs

    run = Jobs.run

    def run_here(self, **given):
        usual = {"disable_remote_inference": True, "disable_remote_cache": True, "progress_bar": False}
        return run(self, **{"cache": Cache(), **usual, **given})

    Jobs.run = run_here


if __name__ == "__main__":
    main()
