"""What processes hold, read from outside by the kernel's own account. Covers: one process, and a whole tree."""

from collections.abc import Iterable
from pathlib import Path

_PAGE_BYTES = 4096


def resident_bytes(pid: int) -> int:
    """0 where it has just ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def tree_of(root: int) -> list[int]:
    """The root first, then all its descendants."""
    pids = [root]
    for pid in pids:
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (task / "children").read_bytes().split())
        except OSError:
            continue  # it has just ended
    return pids


def proportional_bytes(pids: Iterable[int]) -> int:
    """What they hold together: memory that several share counts once."""
    return sum(map(_pss_bytes, pids))


def _pss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except OSError:
        return 0  # it has just ended
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(b"Pss:")), 0)
