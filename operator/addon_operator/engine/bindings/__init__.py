"""Bindings: run hooks on schedules and on changes of Kubernetes objects.

How a hook's process is run stands in ``hooks``.
"""
