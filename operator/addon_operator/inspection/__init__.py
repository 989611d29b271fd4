"""Inspection: reads and checks what people hand in, in a worker process that can be ended.

What the checks are is not known here: they are those of ``values``.
"""
