"""What workers are asked to do in the tests: each takes a port and a payload."""

import asyncio
import contextlib
import ctypes
import fcntl
import mmap
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

MB = 1 << 20
_held: list[object] = []
# Should a limit fail, the test does, and not the machine.
_MEGABYTES = range(400)


def echo(port, payload):
    return payload


def own_pid(port, payload):
    return str(os.getpid()).encode()


def open_descriptors(port, payload):
    return str(len(list(Path("/proc/self/fd").iterdir()))).encode()


async def converse(port, payload):
    port.send(b"ready")
    return await port.receive_async() + payload


def receive(port):
    """The next message, for a task that is not async."""
    return asyncio.run(port.receive_async())


def converse_blocking(port, payload):
    port.send(b"ready")
    return receive(port) + payload


def exchange_blocking(port, payload):
    """Large messages out, while as many come in. The payload says how many, and of which size."""
    count, size = map(int, payload.split())
    for number in range(count):
        port.send(bytes([number]) * size)
    return b"".join(receive(port) for _ in range(count))


async def exchange(port, payload):
    count, size = map(int, payload.split())
    sending = asyncio.create_task(_send_all(port, count, size))
    received = [await port.receive_async() for _ in range(count)]
    await sending
    return b"".join(received)


async def _send_all(port, count, size):
    for number in range(count):
        await port.send_async(bytes([number]) * size)


def return_much(_port, payload):
    return bytes(int(payload))


async def exchange_posted(port, payload):
    """Nobody waits until they have left, and the last words follow them."""
    count, size = map(int, payload.split())
    for number in range(count):
        port.post(bytes([number]) * size)
    return b"".join([await port.receive_async() for _ in range(count)])


def exchange_on_uvloop(port, payload):
    """A loop that makes the descriptor non-blocking; what the worker says after it goes the blocking way."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(exchange(port, payload))


async def turn_while_unread(port, payload):
    """How often the loop turned until a large message had left. The tenth turn makes the file that `payload` names."""
    port.send(b"ready")
    await asyncio.sleep(0.1)
    sending, turns = asyncio.create_task(port.send_async(bytes(5 * MB))), 0
    while not sending.done():
        await asyncio.sleep(0.005)
        turns += 1
        if turns == 10:
            Path(payload.decode()).touch()
    return b"%d" % turns


def wait(port, payload):
    port.send(b"waiting")
    time.sleep(float(payload or 60))
    return b"waited"


def fail(port, payload):
    raise ValueError("no such \ud800 tide")


def leave(port, payload):
    sys.exit(3)


def too_large(port, payload):
    return bytes(65 * MB)


def send_too_large(port, payload):
    port.send(bytes(65 * MB))


async def never_await(port, payload):
    port.send(b"busy")
    while True:
        pass


def fork_and_return(port, payload):
    """Both come back: a child that went on as the worker would answer in its name."""
    return b"parent" if os.fork() else b"child"


def end_at_once(port, payload):
    port.send(b"last words")
    os._exit(7)


def abort(port, payload):
    os.abort()


def touch_nothing(port, payload):
    ctypes.string_at(0)


def kill_itself(port, payload):
    os.kill(os.getpid(), signal.SIGKILL)


def hold_and_end(port, payload):
    """Hold so many megabytes, and end in a way of its own when told to: by a signal, or with an exit code."""
    megabytes, how = payload.decode().split()
    _held.append(bytearray(b"x") * (int(megabytes) * MB))
    receive(port)
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
    os._exit(int(how))


def stop_the_warden(port, payload):
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(0.5)
    return b"still here"


def stop_the_warden_and_take(port, payload):
    """Once, or as long as there is one."""
    for number in range(100):
        if number < int(payload):
            with contextlib.suppress(OSError):
                os.kill(os.getppid(), signal.SIGSTOP)
        area = mmap.mmap(-1, 10 * MB)
        area.write(b"x" * 10 * MB)
        _held.append(area)
        time.sleep(0.005)


def stop_itself(port, payload):
    os.kill(os.getpid(), signal.SIGSTOP)


def close_its_channel(port, payload):
    os.closerange(3, 100)
    time.sleep(60)


def speak_nonsense(port, payload):
    port._line.connection.sendall(b"\xff" * 100)
    time.sleep(60)


def say_half_a_message(port, payload):
    port._line.connection.sendall(b"\x00\x01\x00\x00half")
    os._exit(9)


def take_bytearrays(port, payload):
    _held.extend(bytearray(MB) for _ in _MEGABYTES)


def take_small_objects(port, payload):
    _held.extend([object() for _ in range(40_000)] for _ in _MEGABYTES)


def take_numpy(port, payload):
    import numpy as np

    _held.extend(np.ones(MB // 8) for _ in _MEGABYTES)


def take_at_once(port, payload):
    import numpy as np

    return np.ones(1 << 30).tobytes()


def take_in_threads(port, payload):
    errors = []
    have_started = threading.Barrier(4)  # a thread that cannot start for lack of memory is a RuntimeError

    def take():
        have_started.wait()
        try:
            take_bytearrays(port, payload)
        except MemoryError as error:
            errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raise errors[0]


def take_private(port, payload):
    """mmap tells that it got nothing as an OSError."""
    for _ in range(40):
        area = mmap.mmap(-1, 10 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.write(b"x" * 10 * MB)
        _held.append(area)


def take_shared(port, payload):
    area = mmap.mmap(-1, 400 * MB)
    for _ in _MEGABYTES:
        area.write(b"x" * MB)


def take_memfd_mapped(port, payload):
    descriptor = os.memfd_create("tide")
    os.ftruncate(descriptor, 400 * MB)
    area = mmap.mmap(descriptor, 400 * MB)
    for _ in _MEGABYTES:
        area.write(b"x" * MB)


def take_memfd(port, payload):
    descriptor = os.memfd_create("tide")
    for _ in _MEGABYTES:
        os.write(descriptor, b"x" * MB)


def take_memfds_mapped_and_closed(port, payload):
    for _ in range(40):
        descriptor = os.memfd_create("tide")
        for _ in range(10):
            os.write(descriptor, b"x" * MB)
        time.sleep(int(payload or b"0") / 1000)  # seen while it is open
        # Python's own mapping would keep a copy of the descriptor.
        ctypes.CDLL(None).mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        os.close(descriptor)


def take_memfds_in_flight(port, payload):
    ends = socket.socketpair()
    _held.append(ends)
    for _ in range(40):
        descriptor = os.memfd_create("tide")
        for _ in range(10):
            os.write(descriptor, b"x" * MB)
        socket.send_fds(ends[0], [b"x"], [descriptor])
        os.close(descriptor)


def hide_a_little(port, payload):
    directory, ends = Path(payload.decode()), socket.socketpair()
    descriptor = os.memfd_create("tide")
    os.write(descriptor, b"x" * MB)
    socket.send_fds(ends[0], [b"x"], [descriptor])
    os.close(descriptor)
    (directory / "begun").touch()
    while not (directory / "taken").exists():
        time.sleep(0.05)
    time.sleep(0.1)


def hide_a_little_and_work(port, payload):
    directory, ends = Path(payload.decode()), socket.socketpair()
    descriptor = os.memfd_create("tide")
    os.write(descriptor, b"x" * MB)
    socket.send_fds(ends[0], [b"x"], [descriptor])
    os.close(descriptor)
    (directory / "begun").touch()
    while not (directory / "taken").exists():
        os.urandom(MB)


def share_much(port, payload):
    """In memory that it shows."""
    directory = Path(payload.decode())
    while not (directory / "begun").exists():
        time.sleep(0.01)
    for _ in range(30):
        area = mmap.mmap(-1, 10 * MB)
        area.write(b"x" * 10 * MB)
        _held.append(area)
        time.sleep(0.005)
    (directory / "taken").touch()


def take_segments(port, payload):
    library = ctypes.CDLL(None)
    library.shmat.restype = ctypes.c_void_p
    library.shmdt.argtypes = [ctypes.c_void_p]
    for _ in range(40):
        segment = library.shmget(0, 10 * MB, 0o1600)
        port.send(str(segment).encode())
        area = library.shmat(segment, None, 0)
        ctypes.memset(area, 1, 10 * MB)
        library.shmdt(area)


def leave_a_small_segment(port, payload):
    return str(ctypes.CDLL(None).shmget(0, 4096, 0o1600)).encode()


def take_in_pipes(port, payload):
    """1 MB each for a user who may, as many as there are descriptors for."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    taken = 0
    for _ in range(min(400, most // 2 - 20)):
        _, writer = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, MB)
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                taken += os.write(writer, b"x" * MB)
    time.sleep(1)
    return str(taken).encode()


def take_in_sockets(port, payload):
    for _ in range(1000):
        ends = socket.socketpair()
        _held.append(ends)
        for end in ends:
            end.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    end.send(b"x" * 65536)
    time.sleep(1)


def take_in_small_files(port, payload):
    directory = Path(payload.decode())
    for number in range(6400):
        (directory / str(number)).write_bytes(b"x" * 65536)


def take_in_children(port, payload):
    program = "held = bytearray(b'x') * (30 << 20); import time; time.sleep(60)"
    _held.extend(subprocess.Popen([sys.executable, "-c", program]) for _ in range(8))
    time.sleep(60)


def take_in_forks(port, payload):
    for _ in range(8):
        if not os.fork():
            take = bytearray(b"x") * (30 * MB)
            time.sleep(60)
            os._exit(len(take) and 0)
    time.sleep(60)


def share_with_children(port, payload):
    """Half the limit, and three children that share it: no more is used than before."""
    _held.append(bytearray(b"x") * (40 * MB))
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            time.sleep(0.3)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return b"shared"


def share_with_children_that_work(port, payload):
    """As above, and the children take and give back so often that their faults tell nothing of what they hold."""
    _held.append(bytearray(b"x") * (40 * MB))
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                mmap.mmap(-1, MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).write(b"x" * MB)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return b"shared"


def take_by_writing_in_forks(port, payload):
    """Each fork writes to what it shares: the sizes of the processes stay the same, and the sum of them grows."""
    _held.append(bytearray(b"x") * (40 * MB))
    for _ in range(4):
        if not os.fork():
            _held[0][::4096] = b"y" * (40 * MB // 4096)
            time.sleep(60)
            os._exit(0)
    time.sleep(60)


def swallow_memory_errors(port, payload):
    while True:
        try:
            _held.append(bytearray(64 * 1024))
        except MemoryError:
            continue


def keep(port, payload):
    _held.append(bytearray(b"x") * int(payload))
    time.sleep(0.5)  # long enough for a reading to be told


def keep_and_go_on(port, payload):
    _held.append(bytearray(b"x") * int(payload))
    port.send(b"kept")
    receive(port)
    _held.append(bytearray(b"x") * (20 * MB))


def let_a_child_take(port, payload):
    """A child that takes so many bytes when its worker is told to go on; how it ended."""
    program = f"input(); held = bytearray(b'x') * {int(payload)}"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as child:
        port.send(b"started")
        receive(port)
        child.communicate(b"\n")
    return str(child.returncode).encode()


def come_and_go(port, payload):
    """Takes and gives back a few megabytes, again and again."""
    until = time.monotonic() + float(payload)
    while time.monotonic() < until:
        held = [bytearray(MB) for _ in range(4)]
        del held
    return b"went"


def take_slowly(port, payload):
    """A quarter of a gigabyte a second; near the limit it waits until it may go on."""
    for number in range(int(payload)):
        if number == 90:
            receive(port)
        _held.append(bytearray(b"x") * MB)
        time.sleep(0.004)
    return b"taken"


def leave_a_child(port, payload):
    child = subprocess.Popen(["sleep", "60"])
    port.send(str(child.pid).encode())


def leave_a_daemon(port, payload):
    """Forks twice and starts a session of its own, as daemons do."""
    reader, writer = os.pipe()
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.write(writer, str(os.getpid()).encode())
            time.sleep(60)
        os._exit(0)
    port.send(os.read(reader, 20))


def write_a_large_file(port, payload):
    Path(payload.decode()).write_bytes(bytes(3 * MB))


def chatter(port, payload):
    for number in range(10_000):
        os.write(2, b"line %d\n" % number)
    return b"said"


def limits(port, payload):
    import resource

    core = resource.getrlimit(resource.RLIMIT_CORE)[0]
    score = Path("/proc/self/oom_score_adj").read_text().strip()
    is_leader = os.getpgid(0) == os.getpid() == os.getsid(0)
    return f"{core} {score} {is_leader} {threading.stack_size()} {os.environ['OMP_NUM_THREADS']}".encode()


def write_to_disk(port, payload):
    """Until there is word; a little at a time."""
    port.send(b"ready")
    with Path(payload.decode()).open("wb", buffering=0) as file:
        while not select.select([port._line.connection], [], [], 0.002)[0]:
            file.write(b"x" * MB)
    return receive(port)


def most_descriptors(port, payload):
    import resource

    return str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]).encode()


def random_number(port, payload):
    import random

    return str(random.random()).encode()


def talk_on(port, payload):
    """Leaves a thread behind that sends messages of this task while the next one runs."""

    def talk():
        while True:
            port.send(b"late")
            time.sleep(0.001)

    threading.Thread(target=talk, daemon=True).start()
    return b"left"
