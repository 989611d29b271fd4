"""Authoring: new modules and hooks, written from skeletons."""
