"""The loop of edits: a cluster, an operator on these modules, and what the last save changed."""
