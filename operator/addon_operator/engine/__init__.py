"""The engine: decides what a change leads to, and does it.

What it reads and writes goes through the packages below.
"""
