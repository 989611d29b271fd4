"""Given objects: a cluster in memory that holds what a test says, for hooks, charts and `lookup`.

It answers as an API server does, as far as hooks and charts can tell: kinds, selectors, patches, conflicts.
"""
