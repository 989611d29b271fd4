"""Drift: watches the resources of releases and restores those that disappear."""
