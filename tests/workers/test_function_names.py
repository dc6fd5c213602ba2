import functools
import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from headrace.agents.task import durable_name
from headrace.errors import InvalidInput
from headrace.workers.functions import find_function, refer_to
from headrace.workers.wire import FunctionReference
from tests.workers import entries

SCRIPT = """
import asyncio, sys
from headrace.workers.functions import refer_to
from headrace.workers.pool import WorkerPool

print("loaded as", __name__, flush=True)
SECRET = len(sys.argv)

def where(port, payload):
    return f"{__name__} {SECRET}".encode()

async def main():
    async with WorkerPool() as pool:
        for _ in range(2):
            worker = await pool.worker(80 << 20)
            worker.start(refer_to(where))
            print(await worker.receive())
            pool.give_back(worker)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_reference_leads_back_to_the_function():
    assert find_function(refer_to(entries.echo)) is entries.echo


@pytest.mark.parametrize(
    "function", [lambda port, payload: b"", functools.partial(entries.echo), entries.echo.__call__]
)
def test_a_function_without_a_name_of_its_own_is_refused(function):
    with pytest.raises(InvalidInput, match="at the top of a"):
        refer_to(function)


def test_a_name_that_means_something_else_by_now_is_refused(monkeypatch):
    function = entries.echo
    monkeypatch.setattr(entries, "echo", entries.fail)
    with pytest.raises(InvalidInput, match="something else"):
        refer_to(function)


def test_what_python_m_has_started_is_of_the_same_kind_as_in_a_worker(monkeypatch):
    async def agent(ctx): ...

    started = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", started)
    agent.__module__, agent.__qualname__ = "__main__", "agent"
    assert durable_name(agent) == "__main__:agent"
    started.__spec__ = ModuleSpec("package.module", None)
    assert durable_name(agent) == "package.module:agent"


def test_a_module_that_is_on_no_path_is_loaded_from_its_file(tmp_path):
    (tmp_path / "tidal.py").write_text("def f(): return 7")
    reference = FunctionReference("tidal_elsewhere", "f", str(tmp_path / "tidal.py"))
    assert find_function(reference)() == 7
    del sys.modules["tidal_elsewhere"]


def test_a_scripts_function_runs_in_a_worker_that_imports_it_once_under_another_name(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.count("loaded as __mp_main__") == 1, done.stderr
    assert done.stdout.count("payload=b'__mp_main__ 1'") == 2


def test_a_script_without_a_guard_is_told_so(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.replace('if __name__ == "__main__":\n    ', ""))
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], check=False, capture_output=True, text=True, timeout=60
    )
    assert "if __name__ ==" in done.stdout


def test_a_function_without_a_file_is_refused_with_the_way_out():
    program = "from headrace.workers.functions import refer_to\ndef f(): pass\nrefer_to(f)"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert "Move it into a .py file" in done.stderr


ELSEWHERE = """
from headrace.workers.functions import refer_to

def where(port, payload):
    return payload

def child(port, payload):
    return payload
"""


def test_a_script_whose_path_is_not_on_this_host_is_found_in_the_working_directory(tmp_path):
    (tmp_path / "program.py").write_text(ELSEWHERE)
    code = (
        "from headrace.workers.functions import *; from headrace.workers.wire import FunctionReference\n"
        "found = find_function(FunctionReference('__main__', 'where', '/of/another/host/program.py', is_script=True))\n"
        "import sys; child = refer_to(sys.modules['__mp_main__'].child)\n"
        "print(found(None, 'called'), child.module, child.file, child.is_script)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout == "called __main__ /of/another/host/program.py True\n", ran.stderr


@pytest.mark.parametrize("is_script", [False, True])
def test_a_file_that_is_not_on_this_host_says_how_to_bring_it(is_script):
    reference = FunctionReference("of_another_host", "f", "/of/another/host/program.py", is_script=is_script)
    with pytest.raises(InvalidInput, match=r"/of/another/host/program\.py is not on .*runtime_env"):
        find_function(reference)
