"""Patching, pure: labels, annotations and patches on what a chart renders."""
