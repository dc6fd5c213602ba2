"""One file per protocol: what a model is sent, and what its reply means. docs/models.md lists them.

A protocol over HTTP is a `Dialect` (`openai_chat`, `anthropic_messages`): one file without I/O that writes a request
and reads a reply, whole or streamed; `models.http_client` does the rest. `function` calls a Python function,
`test_model` answers from what it was given.

A local model (`local`) runs in a process of its own (`local_process`, `local_child`), joined by a socket pair:
llama.cpp aborts where Python would raise, and ending a process is the only sure way to have its memory back. Its
resident memory, the mapped model file included, is part of the budget. It ends when the socket closes, is respawned
when it dies, and is unusable after three deaths in a row.
"""
