"""Admission: answers the API server's reviews from memory.

Nothing of the engine is here: replicas that do not lead answer, too.
"""
