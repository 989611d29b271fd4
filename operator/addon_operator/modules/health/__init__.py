"""Health, pure: how resources and modules are, and what a module says of that."""
