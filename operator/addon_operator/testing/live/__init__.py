"""Modules on a real control plane: an operator of the test's own, edited, waited for, looked at."""
