"""Measures and limits memory through the operating system. Only these modules read memory from /proc and cgroups.

    process        sizes and children of one process: by id, or through kept descriptors
      ├─ own_tree      this process and its descendants: opened and closed for each reading (memory.gauge)
      └─ tree          a worker's tree: kept open, read up to a thousand times a second by the warden
           └─ shared_pages, shared_files, hidden_shared_memory, socket_buffers: what plain sizes do not show
    host_memory    what the host and the container have (cgroups finds their groups)

A budget's tree counts the resident memory of all its processes, less what workers had when they were forked, corrected
by PSS (proportional set size) once a second. For a worker's own limit:

- `shared_pages`: pages that forks share are counted once. Bounds from plain sizes decide; only where they leave the
  answer open is the tree stopped for the milliseconds that exact sizes take.
- `shared_files`: memory in memfds and tmpfs files belongs to the tree that has the file open, or wrote most while it
  grew, and no more than that tree can have written. Files that an ended worker leaves count until they are removed.
- `hidden_shared_memory`: SysV segments (`sysv_segments`) belong to the tree that made them and are removed with it.
  Shared memory that no open file leads to (memfds mapped and closed, or in flight in a socket) shows only in the
  host's total: its growth is charged to trees with a trace of it.
- `socket_buffers`: pipes and sockets are asked how full they are.
- `cgroups`: where a cgroup v2 with the memory controller is delegated, each worker joins a leaf of its own. The
  kernel's limit then comes on top, and every process in the leaf ends with it.
- `os_limits`: RLIMIT_DATA, which a process meets as a MemoryError. `portable`: the readings where /proc is missing.

All this is counted rather than forbidden: a seccomp filter needs no-new-privileges, which would break sudo and the like
in a worker's children.
"""
