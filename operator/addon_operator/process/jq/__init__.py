"""jq: filters run in worker processes."""
