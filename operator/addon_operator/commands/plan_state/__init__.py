"""The file of ``plan --record``: a cluster without its secrets, and what answers from it."""
