"""Repositories: charts are pulled from them, into a cache on disk.

Nothing reads what the charts hold but to see that they are whole.
"""
