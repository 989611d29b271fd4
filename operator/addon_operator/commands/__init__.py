"""What the verbs do that need no running operator.

Nothing here prints.
"""
