"""Where the rows of lists come from: files of many formats.

    file ── one pass: length, digest, fields ──► RowSource ──► rows, again and again, in constant memory

A source (`row_source`) gives rows of fields as JSON, in a fixed order, as often as they are asked for. What needs a
pass over all rows, their number, their digest and their fields, is found once. Does not cover: what a row means, and
rows that are made of other rows (plan.rows).
"""
