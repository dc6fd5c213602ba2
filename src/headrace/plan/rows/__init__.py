"""Lists of agents and scenarios of any length: where their rows lie, and their verbs.

    items ── Spool (RAM up to 4 MB, then a file) ── rows ── verb ── rows ── Spool ...

Every verb reads the rows of a list one by one and yields those of a new one, which is spooled as it comes: a list of
any length goes through in constant memory. Verbs that need another order keep positions, not items, and those in a
temporary file once they are many (row_order).
"""
