"""Webhook configurations: registered, and kept as they should be."""
