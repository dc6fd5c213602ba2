"""Charts of our own: SVG, and the same drawn with letters for a terminal. Pure, and without a library.

    chart_data     what is drawn, as values: bars, histograms, memory; counted and bounded by whoever makes them
    number_bins    intervals for numbers, and the figures beside an axis
    svg_parts      elements of SVG with every text escaped; colours for light and dark
    bar_svg        bars and histograms, one panel a group
    memory_svg     memory over time against its budget, with levels and events
    step_svg       the steps of an agent run on a time line
    bar_text       bars and histograms in letters, as wide as it is asked for
    memory_text    memory in letters

Answers are data: a text from elsewhere reaches an SVG only through `svg_parts.escaped`, and a terminal only through
`display.cell_text`. A picture is bounded because its data is: some dozen bars, a handful of panels, texts that are cut.
Used by pictures of results (results.plots), the command line, benchmarks, and later by the page.
"""
