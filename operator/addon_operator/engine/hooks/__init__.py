"""Runs of hooks: the process, and its outputs applied.

What hooks and the operator say to each other stands in ``hook_contract``; why a hook runs, in ``bindings``.
"""
