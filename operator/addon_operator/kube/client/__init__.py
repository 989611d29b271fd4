"""The client: objects by path, typed errors, retries.

It knows no kind of object; the objects of the operator are in ``objects``.
"""
