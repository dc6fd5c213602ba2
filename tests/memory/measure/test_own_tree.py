import subprocess
import sys
import threading

import pytest

from headrace.memory.measure.own_tree import tree_bytes

MB = 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_starting_a_program_does_not_look_like_as_much_memory_again():
    held = bytearray(100 * MB)
    before, readings, is_over = tree_bytes(), [0], threading.Event()

    def look() -> None:
        while not is_over.is_set():
            readings[0] = max(readings[0], tree_bytes() - before)

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(150):
        subprocess.run(["/bin/true"], check=True)
    is_over.set()
    watcher.join()
    assert 0 < readings[0] < len(held) / 2
