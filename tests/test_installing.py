"""Messages about missing packages name a command that works where they are read."""

import shutil
import subprocess
import sys
import venv
from importlib import util
from pathlib import Path

import pytest

from headrace import installing
from headrace.installing import install_command


@pytest.mark.parametrize(
    ("there", "has_uv", "expected"),
    [
        ({"pip"}, True, "{0} -m pip install pandas"),
        ({"ensurepip"}, True, "uv pip install --python {0} pandas"),
        ({"ensurepip"}, False, "{0} -m ensurepip && {0} -m pip install pandas"),
        (set(), False, "pip --python {0} install pandas"),
    ],
)
def test_the_command_fits_the_environment(
    monkeypatch: pytest.MonkeyPatch, there: set[str], has_uv: bool, expected: str
):
    monkeypatch.setattr(installing, "find_spec", lambda name: name if name in there else None)
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/uv" if has_uv else None)
    assert install_command("pandas") == expected.format(sys.executable)


@pytest.mark.skipif(util.find_spec("ensurepip") is None, reason="this Python has no ensurepip")
def test_an_environment_without_pip_is_told_how_to_get_one(tmp_path: Path):
    venv.create(tmp_path / "env", with_pip=False)
    python, source = tmp_path / "env" / "bin" / "python", Path(installing.__file__).parents[1]
    ask = f"import sys; sys.path.insert(0, {str(source)!r}); from headrace.installing import install_command as c"
    asked = [python, "-c", f"{ask}; print(c('pandas'))"]
    command = subprocess.run(asked, capture_output=True, text=True, check=True, env={"PATH": ""}).stdout
    assert command == f"{python} -m ensurepip && {python} -m pip install pandas\n"
