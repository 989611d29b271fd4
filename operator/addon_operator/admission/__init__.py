"""Admission: answers the API server's reviews, nearly always from memory.

Nothing of the engine is here: replicas that do not lead answer, too.
"""
