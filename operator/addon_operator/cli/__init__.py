"""The command line: one file per verb; it renders and decides nothing.

What a verb does stands in ``commands``.
"""
