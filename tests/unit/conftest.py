"""Settings of the unit tests."""

from addon_operator.app import libraries

# A third of a second for each process, as for the operator itself.
with libraries.quick_imports():
    pass
