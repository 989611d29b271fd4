"""The command line: one file per verb; it renders and decides nothing."""
