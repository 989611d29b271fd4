"""Discovery: which kinds the API server serves."""
