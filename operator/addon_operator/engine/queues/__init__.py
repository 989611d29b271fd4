"""Queues: run the tasks of each owner one after another, and retry those that fail.

What a task does is its class's to know.
"""
