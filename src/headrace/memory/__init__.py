"""Memory: how much there is, how much is used, and what to do when it gets short."""
