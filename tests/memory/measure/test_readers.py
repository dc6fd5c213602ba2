import re
from pathlib import Path

import headrace

SOURCE = Path(headrace.__file__).parent
# Files of /proc that show memory; others (a boot's id, a process's start, open descriptors) are not meant.
OF_MEMORY = re.compile(r"/proc\b.*/(statm|smaps_rollup|smaps|meminfo|clear_refs|sysvipc)\b|/proc/meminfo\b")
ALLOWED = {Path("workers/limit_mechanisms.py")}  # asks whether the file is there, and reads nothing


def test_memory_is_read_from_the_system_in_one_folder_only():
    readers = {
        path.relative_to(SOURCE)
        for path in SOURCE.rglob("*.py")
        if any(OF_MEMORY.search(line) for line in path.read_text(encoding="utf-8").splitlines())
    }
    assert {path for path in readers if path.parts[:2] != ("memory", "measure")} <= ALLOWED
    assert Path("memory/measure/process.py") in readers
