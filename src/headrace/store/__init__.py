"""What lasts: the run file, its schema, its journal, and reading it back. Only the controller writes it."""
