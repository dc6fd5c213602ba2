"""Lists of agents and scenarios of any length: where their rows lie, and their verbs.

    items ── Spool (RAM up to 4 MB, then a file)
                                                  ──► rows ── verb ── verb ──► rows, or one pass into a Spool
    file ── source (plan.sources)

A verb reads nothing: it makes a list whose rows are derived (`derived`) when they are asked for, as one stream through
all verbs. What needs all of them, their number or one by its position, spools them once: a list of any length goes
through in constant memory. What calls a function of the user's is spooled at once, since it may not do the same twice.
Verbs that need another order keep positions, not items, and those in a temporary file once they are many (row_order).
"""
