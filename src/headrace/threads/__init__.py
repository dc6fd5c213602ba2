"""Event loops in threads of their own, calls between them, and noticing that one is stuck."""
