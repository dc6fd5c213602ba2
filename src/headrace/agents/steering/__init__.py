"""How an engine stands, and what is done about its runs, from another process: through the socket beside its file
(store.holder_socket).

    engine_messages     the vocabulary: state, emitted events, cancel, retry, send, resolve
    engine_server       carries requests out on the engine's loop, each of them an event of the engine
    engine_client       asks an engine in another process
    latest_emitted      the latest events of `ctx.emit`, bounded, in memory only

Requests go to the controller, which alone writes the engine's file: wherever executors run, they are not asked.
"""
