"""The debug endpoint: a unix socket that answers questions about a running operator."""
