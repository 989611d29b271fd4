"""The engine: decides what a change leads to, and does it."""
