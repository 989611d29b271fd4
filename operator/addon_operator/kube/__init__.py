"""The Kubernetes API.

What the operator does with what it reads and writes is not known here.
"""
