"""Work on the nodes of a cluster: Ray starts the processes and places them, everything else is as on one machine.

    controller                                              node
    executors ── WorkerPool                                 NodeHost, an actor of Ray's (node_host)
                                 │ orders, reports             ▲
                                 ▼                             │
                              RemoteWarden ── payloads ──► deliver, collect ── LocalWarden ── warden ── workers
                              RemoteChannel ══ one link for each worker ══ SocketLink ══ socket ══════════╝

Why: the journal, the limits and the money stay ours. The executors (`interviews.workers`, `agents.workers`) know pools
of workers, and a pool knows its warden by orders and reports only. So another host is another place of a pool's warden,
and nothing else has to know of it: hard limits, watchdog and one-step deaths are the node's own warden's; turns at an
endpoint, cached replies, budgets and the run file stay with the controller, for which a worker elsewhere is a worker.

- **Nodes** (`ray_nodes`): an actor on each node with CPUs, for as long as it is there. One that joins gets work within
  seconds, one that is lost costs what was in flight on it. Ray repeats nothing: epochs decide who is late.
- **Payloads** (`tunnel_wire`): one call to the node and one back at a time, each with all that was posted meanwhile,
  in arguments and results that are small enough to stay out of Ray's object store.
- **Links** (`links`): a worker's channel as bytes, with credit in both directions. The streams of programs go the same
  way, from file to file (`program_streams`).
- **Readings** (`node_memory`): what everything of ours uses on the node, and what of it is not workers'.
- **Files** in prompts (`sent_files`, `node_files`, `node_file_source`): a worker that needs one asks its node's host,
  which has the controller send it, once for the node: block by block, a few for all nodes together, checked by its
  digest, into a private directory of bounded size. Workers on the controller's host read by the path.
- **Ends.** The actor's death in any way, a minute without a word from the controller, or the controller's own end: the
  node's warden ends everything, and removes that directory. A node that does not answer for 15 s is lost to the
  controller, whatever it does later.
- **Code** (`code_version`): both sides must run the same version of this package. What else a program needs has to be
  on the nodes: installed, or brought by Ray's `runtime_env`.

Does not cover: what is divided among nodes (`interviews.workers.survey_nodes`, `agents.nodes`).
"""
