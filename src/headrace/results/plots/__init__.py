"""Pictures of results: `results.plot("answer.mood", by="agent.city")`, `results.plot_memory()`.

plot           Plot: what users hold; shows itself in a notebook, in a terminal, and as an SVG file
axes           places on an axis for the values of a column: categories, intervals of numbers, lengths of texts, items
plotted_column one column of a view: what it holds, and the axis that suits it
counting       how many interviews stand at each place: by SQLite where that is exact, otherwise row by row
distributions  counts made into a chart

SQLite counts in flat memory whatever the size, and what is kept here is bounded by the axes: some dozen bars and a
handful of groups; all others are counted as "other". Does not cover: drawing (charts).
"""
