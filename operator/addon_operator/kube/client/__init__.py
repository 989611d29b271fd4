"""The client: objects by path, typed errors, retries."""
