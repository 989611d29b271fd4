"""Discovery: which kinds the API server serves.

No object is read here but those that say what is served.
"""
