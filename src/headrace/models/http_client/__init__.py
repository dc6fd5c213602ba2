"""What protocols over HTTP share. `http_provider` sends a request and reads a reply for any protocol (a `Dialect`).

    Request ──► Dialect.body ──► addresses: the least busy ──► transport ──► kept_connections ──► the service
    Reply   ◄── Dialect.reply ◄── decoding ◄── redaction takes the key out ◄── bodies ◄───────────────┘
            └── or a ProviderError by failures; rates by rate_headers

Why not the services' own clients: with 1,000 calls in flight, aiohttp and msgspec took about 0.1 ms of CPU for each,
httpx 1.9 to 18 ms and the openai client 1.3 to 5 ms.

- It asks the least busy address, or the one that the prompt's beginning belongs to (`addresses`), adds the key, states
  the schema in words where an endpoint does not take one, and turns every failure into one kind of ProviderError
  (`failures` reads status codes such as 429, `rate_headers` the headers about rates).
- Bodies above 256 KiB wait on disk while they come (`bodies`); above `max_response_bytes` they are an error. A large
  reply stays on disk until a worker's limit, or the budget of a survey, has room for it (`reply_room`): calls made
  together are answered together.
- Of a response whose values would take too much memory, such as one with `logprobs` of a long answer, only the fields
  that something reads are decoded (`envelope`).
- A body with files is read from disk while it is sent (`file_bodies`): 32 of a model at a time, so that calls in flight
  cost blocks and not pictures, and the window need not know of them. `fitted_files` keeps to a service's size limits.
- A kept connection never hands one call's bytes to another (`kept_connections`): bytes that arrive while no request is
  in flight, behind a response's own end, or before a request's bytes have left close the connection, and that server's
  connections are used once each from then on. A server is watched before its connections are used twice.
- Replies of 1xx, headers and endless bytes are bounded by number, everything else by `timeout_s`.
"""
