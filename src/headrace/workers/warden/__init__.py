"""The warden: one process with one thread that forks workers, reads their memory, kills those above their limit, reaps.

Why a process: a Python thread beside busy code was 25-45 ms late, and 1.2 s late during a regular expression. The
warden is started before any database opens, because no SQLite connection may cross a fork.

- It imports what workers need, freezes the garbage collector and forks a worker in one to two milliseconds
  (`children`).
- It reads each tree every 10 ms, and every 1 ms when the tree is above 70 % of its limit or about to be; above the
  limit it kills the process group (`watch` decides, `warden` acts). A worker at 95 % of its limit that takes no step
  for 5 s is ended as well. A worker that waits for a task is read every 100 ms; while no worker has a task, the warden
  sleeps that long too, and the first task wakes it by a signal.
- It ends everything when the controller's socket closes; workers carry a parent-death signal for the warden's own
  death.
- `standby` is the process behind it. Killing the warden, or warden and controller together, leaves no process; killing
  all three at once may. Warden and standby continue each other when a signal has stopped one; a warden that is stopped
  again and again, or has not turned for 5 s, is ended with its workers.
- `control` is its end of the controller's socket, `reaping` how its children end, `stuck` how it notices that a
  worker's event loop is stuck.
"""
