"""The messages between controller, warden and workers, sent with msgspec over unix sockets.

Covers: the messages, and their bytes. Does not cover: frames (headrace.framing), sockets (workers.channel), or what a
task's payload means, which only its entry function knows. A worker has one task at a time; `Message` goes both ways
while it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from headrace.framing import HEADER, BadFrame, with_header

MEMORY_EXIT_CODE = 71  # of a worker that met its memory limit where it could send no message


class FunctionReference(msgspec.Struct, frozen=True, array_like=True):
    """A function by name; `file` is where its module lies, `is_script` that the module was run as `__main__`."""

    module: str
    qualname: str
    file: str
    is_script: bool = False


class WorkerTask(msgspec.Struct, tag=True, array_like=True):
    """`entry` is called with a port and the payload, in the worker; what it returns is the payload of `TaskDone`.

    `epoch` counts the tasks of a worker. A message of an earlier one, from a thread that it left behind, is refused.
    """

    epoch: int
    entry: FunctionReference
    payload: bytes = b""


class TaskMessage(msgspec.Struct, tag=True, array_like=True):
    epoch: int
    payload: bytes


class TaskDone(msgspec.Struct, tag=True, array_like=True):
    epoch: int
    payload: bytes = b""


class TaskFailed(msgspec.Struct, tag=True, array_like=True):
    """`reason` is the error with its last lines of code."""

    epoch: int
    reason: str


class TaskOutOfMemory(msgspec.Struct, tag=True, array_like=True):
    """The worker met its hard limit as a MemoryError. `used` is the most that was resident, `reserved` what was mapped:
    a limit that was hit by reservations (stacks of threads, one huge array) has a small `used`.
    """

    epoch: int
    used_bytes: int
    reserved_bytes: int
    reason: str


ToWorker: TypeAlias = WorkerTask | TaskMessage
FromWorker: TypeAlias = TaskMessage | TaskDone | TaskFailed | TaskOutOfMemory


class DeathKind(Enum):
    EXITED = "exited"
    SIGNALLED = "signalled"
    OUT_OF_MEMORY = "out of memory"
    HUNG = "hung"
    STOPPED = "stopped"  # by SIGSTOP, for longer than the warden waits
    TOO_MUCH_OUTPUT = "too much output"
    WARDEN_ENDED = "warden ended"  # and all workers with it
    LOST = "lost"  # the cause is unknown: the warden never started it, or it left its channel


class Setup(msgspec.Struct, tag=True, array_like=True):
    """The first message to a warden."""

    sys_path: list[str]
    argv: list[str]
    preload: list[str]
    poll_s: float
    hot_poll_s: float
    hang_s: float
    largest_file_bytes: int
    forks: bool
    stuck_after_s: float | None


class ForkWorker(msgspec.Struct, tag=True, array_like=True):
    """A worker, please; comes with one descriptor, its channel."""

    worker: int
    limit_bytes: int


class SpawnProgram(msgspec.Struct, tag=True, array_like=True):
    """A program that is not Python; comes with three descriptors, its standard streams. Without an `environment` it has
    that of the host where it runs; `located` completes it there.
    """

    worker: int
    limit_bytes: int
    argv: list[str]
    environment: dict[str, str] | None
    directory: str
    largest_output_bytes: int


class SetLimit(msgspec.Struct, tag=True, array_like=True):
    """Lend more, or take back: never below what is in use, so the answer may be above what was asked for."""

    worker: int
    limit_bytes: int


class KillWorker(msgspec.Struct, tag=True, array_like=True):
    """Send a signal to the whole tree of a worker. Where there is a `reason`, its death has it, and this `kind`."""

    worker: int
    signal: int
    reason: str = ""
    kind: DeathKind = DeathKind.HUNG


class Ready(msgspec.Struct, tag=True, array_like=True):
    """`not_preloaded` has, for each module that could not be imported, the reason."""

    pid: int
    not_preloaded: dict[str, str]
    layers: list[tuple[str, str]]


class WorkerStarted(msgspec.Struct, tag=True, array_like=True):
    worker: int
    pid: int
    base_bytes: int


class LimitSet(msgspec.Struct, tag=True, array_like=True):
    """The answer to each `SetLimit`, in order: the limit that holds from now on."""

    worker: int
    limit_bytes: int


class WorkerReading(msgspec.Struct, array_like=True):
    """What a worker's tree uses above what it shared with the warden at its start. `counted_bytes` is what counts
    against its limit: RLIMIT_DATA counts what is reserved too, and numpy reserves much that it never touches.
    """

    worker: int
    used_bytes: int
    counted_bytes: int


class Readings(msgspec.Struct, tag=True, array_like=True):
    """`abandoned_bytes` are in files on tmpfs whose writers have ended."""

    readings: list[WorkerReading]
    abandoned_bytes: int = 0


class Stuck(msgspec.Struct, tag=True, array_like=True):
    """A worker's event loop has not turned for so long; `stack` is faulthandler's, empty where there is none."""

    worker: int
    seconds: float
    stack: str


class Halted(msgspec.Struct, tag=True, array_like=True):
    """The warden or its standby was stopped by a signal, so many times since it started, and the other continued it."""

    times: int


class Death(msgspec.Struct, tag=True, array_like=True):
    """How a worker ended. `code` is its exit code, `signal` what killed it; one of them is None.

    `used_bytes` is the reading it was killed for, or the last one; `peak_bytes` the highest of any. `reserved_bytes` is
    what it had asked for by the last reading, which is what the hard limit counts. `abandoned_bytes` as in `Readings`:
    what it leaves is known before what it was lent is lent again.
    """

    worker: int
    kind: DeathKind
    code: int | None = None
    signal: int | None = None
    used_bytes: int = 0
    peak_bytes: int = 0
    limit_bytes: int = 0
    reserved_bytes: int = 0
    reason: str = ""
    abandoned_bytes: int = 0


ToWarden: TypeAlias = Setup | ForkWorker | SpawnProgram | SetLimit | KillWorker
FromWarden: TypeAlias = Ready | WorkerStarted | LimitSet | Readings | Stuck | Halted | Death

_encoder = msgspec.msgpack.Encoder()
_FIRST_BYTES = 64


def frame(message: msgspec.Struct) -> bytearray:
    """Encode it in place: a large one is there once, and at a memory limit msgspec's own buffer would be a crash."""
    buffer = bytearray(_FIRST_BYTES)
    _encoder.encode_into(message, buffer, HEADER.size)
    return with_header(buffer)


def decoder_of(expected: Any) -> Callable[[bytes], Any]:
    """Return the function that makes a message of the type `expected` out of a frame's body."""
    decode = msgspec.msgpack.Decoder(expected).decode

    def decoded(body: bytes) -> Any:
        try:
            return decode(body)
        except msgspec.DecodeError as error:
            raise BadFrame(f"a message that makes no sense: {error}") from error

    return decoded
