"""Children: hooks, scripts and Helm, each run to its end in a process group of its own.

What a child prints means nothing here.
"""
