"""Bindings: run hooks on schedules and on changes of Kubernetes objects."""
