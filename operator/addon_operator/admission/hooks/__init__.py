"""Webhooks of hooks: registered as long as somebody answers them, and handed on to who does.

What a hook answers is not found out here: an entry has a function for that.
"""
