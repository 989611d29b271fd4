"""Loading: modules and hooks, read from disk as they are now.

Nothing is run here, and nothing is known of the cluster.
"""
