"""A real local control plane, for the demo, for tests and for authors of modules.

The operator itself never needs it.
"""
