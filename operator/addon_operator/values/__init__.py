"""Values, pure: their sources, how they lie on each other, and what is read of them.

Nothing is read from disk or from the cluster here.
"""
