"""The Kubernetes API: asked, followed and written to.

What the operator does with what it reads and writes is not known here.
"""
