"""The contract with hooks, pure: what they are given and what they may answer.

No hook is run here, and no file of one is read.
"""
