"""The `headrace` command. `main` lists the commands; each group of commands is a module.

Errors become messages and exit codes around each command (`telling`). Text for people adapts to the terminal's width
and letters (`terminal`, `tables`); data for programs is always UTF-8. `doctor` needs only the standard library and
typer, because it must run where an installation is broken.
"""
