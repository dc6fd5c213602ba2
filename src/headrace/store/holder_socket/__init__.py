"""Asking the process that holds a run file or an engine file, through a Unix socket beside the file.

    <file>.sock         a Unix socket beside the file, mode 0600, there while a process holds the file
    a message           a frame (headrace.framing) with a msgpack body
    an exchange         one request, one reply; then the connection is closed

    socket_address      where the socket is, and who is at its other end
    request_server      answers: a few short, bounded clients on the holder's loop
    request_client      asks, and says in words why it cannot
    silent_holders      those that did not answer, so that who looks does not wait for them again

The transport is one, the vocabularies are two: a run's (interviews.steering) and an engine's (agents.steering). Only
the same user is answered. The holder of the file's lock may replace a dead socket. Where none can be made, the holder
goes on without one, and is watched through its file.
"""
