"""The warden: one process with one thread that forks workers, reads their memory, kills those above their limit, reaps.

    controller ──── orders: fork, spawn, set limit, kill ────►  control ──► warden ──► children (fork, exec, reap)
        ▲                                                                     │              │
        │                                                                     ▼              ▼
        └──── reports: started, readings, stuck, death ◄──── watchdog ◄── watch: one per tree ── worker, its children
                                                                │
    standby, the warden's parent: continues it, cleans up       └── stuck: one per worker's event loop

Why a process. A Python thread beside busy code was 25-45 ms late, and 1.2 s late during a regular expression; by then a
worker has taken a gigabyte. A process with one thread can also fork safely, and what it has imported is shared
copy-on-write by all workers. It is started before any database opens, because no SQLite connection may cross a fork.

The objects
- `warden`: the loop. It waits in `poll` for orders, for SIGCHLD and for the time of the next look.
- `control`: its end of the controller's socket; never blocks, and leaves readings out while the controller is behind.
- `children`: makes a child (a worker in one to two milliseconds: everything it needs is imported and the garbage
  collector is frozen; a program by exec), sends signals to trees, and waits for exits.
- `watchdog`: all trees. It decides when each is read, kills, sets limits, and reports readings.
- `watch`: one tree. It decides from a reading whether there is a reason to kill, and which.
- `stuck`: one worker's event loop. It notices that the loop does not turn and asks for the stack (workers.watched_loop
  is the worker's side; threads/__init__ says why the engine's own loop has another mechanism).
- `standby`: the warden's parent process, for the case that the warden itself is stopped or killed.

The algorithm
- Each tree is read every 10 ms, and every 1 ms while it is above 70 % of its limit or about to be. Above the limit, the
  process group and every process of the tree get SIGKILL, again at each look until the worker is reaped.
- A worker that is at 95 % of its limit or stopped by a signal, and takes no step for 5 s, is killed as well: at its
  limit it may be swapping, or waiting for memory that nobody will give it.
- A worker that waits for a task is read every 100 ms; while no worker has a task, the warden sleeps that long too, and
  the first task wakes it by SIGURG.
- A limit is lowered between two readings, and never below what the tree needs to go on.
- When a worker ends, its tree is killed before it is reaped (so that no pid can have been given to another process),
  its files in memory are charged to the budget, and one `Death` is reported; workers.deaths says what it means.
- The warden ends everything when the controller's socket closes or its parent changes; workers carry a parent-death
  signal for the warden's own end. Killing the warden, or warden and controller together, leaves no process; killing all
  three in one moment may. Warden and standby continue each other when a signal has stopped one; a warden that is
  stopped again and again, or has not turned for 5 s, is killed with its workers.

Elsewhere than on Linux there is no standby, trees are read through psutil, and on macOS workers are started from
nothing instead of forked.
"""
