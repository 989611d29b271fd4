"""Informers: follow objects with as few watches as possible."""
