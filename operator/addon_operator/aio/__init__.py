"""Small helpers for asyncio.

Nothing here knows the operator.
"""
