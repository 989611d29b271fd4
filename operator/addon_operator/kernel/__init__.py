"""What everything may use and what uses nothing of ours: names, errors, time, quantities.

Nothing here reads a file, or knows the operator.
"""
