"""Modules, pure: what a module is, what its manifests hold, what a converge and a release need."""
