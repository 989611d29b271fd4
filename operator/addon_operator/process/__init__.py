"""Programs that the operator starts.

What they are started for is not known here.
"""
