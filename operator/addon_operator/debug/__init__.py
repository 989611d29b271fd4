"""The debug endpoint: a unix socket that answers questions about a running operator.

It answers who can reach its socket, in full; what everybody may see stands in ``status``.
"""
