"""Webhook configurations: registered, and kept as they should be.

What the webhooks answer is not known here.
"""
