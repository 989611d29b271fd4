"""jq: filters run in worker processes.

Which filter is for which objects is known in ``kube``.
"""
