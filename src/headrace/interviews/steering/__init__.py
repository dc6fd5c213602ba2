"""How a run stands, and pausing, tuning and stopping it, from another process: through a Unix socket beside its run
file.

The socket (`<run>.sock`, mode 0600, same user only) takes one request a connection: state, pause, resume, tune, stop,
retry.
It lives on the engine's loop; clients are few, short and bounded, so nothing they do reaches the run. The holder of the
file's lock may replace a dead socket. Where none can be made, the run goes on without one and is watched through its
file.

Paused means that the window admits nothing. A changed concurrency takes effect as permits come free, and upwards step
by step, and is kept in the file. A retry asks the interviews again that have failed and ended, behind what is still to
come; not where a callback or a stream gets each result once.
"""
