"""Notifications: people are told when a module breaks, and when it works again."""
