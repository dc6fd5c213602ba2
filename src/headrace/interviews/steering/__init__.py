"""How a run stands, and pausing, tuning and stopping it, from another process: through the socket beside its run file
(store.holder_socket).

A connection takes one request: state, pause, resume, tune, stop, stop now, retry. They are answered on the run's loop;
clients are few, short and bounded, so nothing they do reaches the run.

Paused means that the window admits nothing. A changed concurrency takes effect as permits come free, and upwards step
by step, and is kept in the file. A retry asks the interviews again that have failed and ended, behind what is still to
come; not where a callback or a stream gets each result once.
"""
