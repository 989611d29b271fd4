"""Small helpers for asyncio."""
