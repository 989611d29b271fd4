"""Tests without Python: cases in YAML, read, run and compared."""
