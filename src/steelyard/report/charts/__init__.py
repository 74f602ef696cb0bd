"""Charts as Vega-Lite specifications: one kind of chart per file, data by named dataset."""
