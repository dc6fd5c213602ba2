"""One file per protocol: what a model is sent, and what its reply means."""
