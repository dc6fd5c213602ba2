"""The command line: what people touch."""
