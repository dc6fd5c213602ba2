"""Sets the limits of a process in the operating system: resource limits, signals, parent-death signal, stack sizes.

A process calls these for itself, before it runs the user's code. Does not cover: readings and kills,
which come from outside (workers.warden.warden). Where a platform lacks something, it is left out and
`enforcement_layers` says so: Windows has none of it, macOS neither RLIMIT_DATA nor /proc.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None

ON_LINUX = sys.platform.startswith("linux")
THREAD_STACK_BYTES = 1 << 20
# Set before anything is imported: libraries read them once. An arena of malloc's per thread would reserve 64 MB each.
ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "UV_THREADPOOL_SIZE": "1",  # its four stacks of 8 MB count against RLIMIT_DATA, and without one libuv aborts
}
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of mallopt
_LARGE_BLOCK_BYTES = 256 << 10
_OOM_SCORE = b"800"  # of 1000: before the controller, after nothing that the user would miss more


def adopt_orphans() -> bool:
    """Make descendants whose parent ends become this process's children instead of init's."""
    return ON_LINUX and _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """For a process whose parent has one thread: the signal comes when the thread that forked it ends."""
    if ON_LINUX:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it ended before the signal was asked for


@functools.cache  # once for all: forks inherit it
def return_large_blocks() -> None:
    """Have the C library return large blocks. It would learn to keep them, and the process stay as large."""
    set_option = getattr(_c_library(), "mallopt", None) if ON_LINUX else None
    if set_option is not None:  # musl has none, and returns them anyway
        set_option(_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)


def share_one_arena() -> None:
    """Have all threads made from now on allocate from one heap: what one of a few readers frees, another uses."""
    set_option = getattr(_c_library(), "mallopt", None) if ON_LINUX else None
    if set_option is not None:  # musl has one anyway
        set_option(_ARENA_MAX, 1)


def expect_blocks_of(size_bytes: int) -> None:
    """Data of this size is about to come, again and again: where it is large, see to it that its memory is returned.
    Once it has come the heap has grown, small blocks lie behind the large ones, and readings never fall again.
    """
    if size_bytes >= _LARGE_BLOCK_BYTES:
        return_large_blocks()


def small_stacks() -> None:
    """Give threads made from now on, Python's and others, 1 MiB of stack: 8 MB each would count against RLIMIT_DATA."""
    import threading

    threading.stack_size(THREAD_STACK_BYTES)
    set_default = getattr(_c_library(), "pthread_setattr_default_np", None) if ON_LINUX else None
    if set_default is not None:  # musl's stacks are small as they are
        attributes = ctypes.create_string_buffer(128)
        _c_library().pthread_attr_init(attributes)
        _c_library().pthread_attr_setstacksize(attributes, ctypes.c_size_t(THREAD_STACK_BYTES))
        set_default(attributes)


def limit_files(largest_file_bytes: int) -> None:
    """Allow no core dumps, and no file above the cap: a write beyond it fails with EFBIG in Python."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if largest_file_bytes:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        soft = largest_file_bytes if hard == resource.RLIM_INFINITY else min(hard, largest_file_bytes)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def limit_data(pid: int, data_bytes: int) -> bool:
    """Set the soft limit of a process of ours, which can be lent more later."""
    if resource is None or not ON_LINUX:
        return False
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_DATA)[1]
        soft = data_bytes if hard == resource.RLIM_INFINITY else min(hard, data_bytes)
        resource.prlimit(pid, resource.RLIMIT_DATA, (soft, hard))
    except OSError:
        return False  # it ended meanwhile, or a sandbox forbids it
    return True


def allow_data(data_bytes: int) -> None:
    """Raise this process's own limit to at least so much; a higher one stays."""
    if resource is None or not ON_LINUX:
        return
    soft = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if soft != resource.RLIM_INFINITY and soft < data_bytes:
        limit_data(0, data_bytes)


def own_limits() -> tuple[tuple[int, int], ...]:
    """Read this process's limits but for RLIMIT_DATA, which the warden moves."""
    if resource is None:
        return ()
    names = ("AS", "CPU", "FSIZE", "NOFILE", "NPROC", "STACK")
    return tuple(resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in names)


def forget_peak() -> None:
    """Have the kernel count the most that was ever resident anew."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_bytes(b"5")


def first_to_go() -> None:
    """Have the kernel end this process before others if the host runs out of memory."""
    if ON_LINUX:
        with suppress(OSError):
            score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(score, _OOM_SCORE)
            finally:
                os.close(score)


def ahead_of_workers() -> int:
    """Schedule this process before those it watches, or it would be late. Returns the niceness to give them back."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):  # needs a privilege that most have not
        os.setpriority(os.PRIO_PROCESS, 0, min(before, -10))
        if ON_LINUX:  # where sessions are scheduled as groups, niceness counts only within one
            Path("/proc/self/autogroup").write_text("-10")
    return before


def all_descriptors() -> int:
    """Raise the limit on descriptors as far as it goes: a watchdog keeps three open for each process. Returns
    how many it could have before, to give them back to workers.
    """
    if resource is None:
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses a hard limit that is infinite
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def limit_descriptors(most: int) -> None:
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def ordinary_signals() -> None:
    """Undo what the warden and Python have set, for a process that is neither."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGURG, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _prctl(option: int, value: int) -> bool:
    return _c_library().prctl(option, value, 0, 0, 0) == 0


@functools.cache  # a fork inherits it; opening it anew touches a hundred pages
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
