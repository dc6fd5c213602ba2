"""The run file of a survey: its tables, its journal, and reading it back. Only the controller writes it."""
