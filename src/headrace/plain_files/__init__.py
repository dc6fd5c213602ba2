"""Files that are opened and written by their names, where somebody else may have put something under that name.

side_files   opening a file whose name can be foreseen: neither a link nor a FIFO nor a device
replacing    writing a file whole under another name, then renaming it

Does not cover: SQLite files (store), and files that prompts hold (survey.files).
"""
