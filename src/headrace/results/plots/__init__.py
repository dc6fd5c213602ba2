"""Pictures of results: `results.plot("answer.mood", by="agent.city")`, `results.plot_memory()`.

plot           Plot: what users hold; shows itself in a notebook, in a terminal, and as an SVG file
axes           places on an axis for the values of a column: categories, intervals of numbers, lengths of texts, items
plotted_column one column of a view: what it holds, and the axis that suits it
counting       how many interviews stand at each place: by SQLite where that is exact, otherwise row by row
distributions  counts made into a chart

counted_columns  how a column is counted range by range, so that ranges can be added up
range_counting   counts a range of ordinals: by SQLite, or row by row
kept_column      the counts of a column by range, and their sum
kept_counts      keeps counts of files that grow: a range is counted again when it has changed
kept_charts      kept counts made into charts, with the filter of each bar

SQLite counts in flat memory whatever the size, and what is kept here is bounded by the axes: some dozen bars and a
handful of groups; all others are counted as "other". Does not cover: drawing (charts).
"""
