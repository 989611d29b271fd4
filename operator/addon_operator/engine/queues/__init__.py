"""Queues: run tasks one after another, and retry those that fail."""
