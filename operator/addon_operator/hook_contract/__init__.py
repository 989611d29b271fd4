"""The contract with hooks, pure: what they are given and what they may answer."""
