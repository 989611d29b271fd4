"""Settings: their names, their types, and which flag or variable wins.

What a setting does is not known here.
"""
