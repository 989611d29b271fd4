"""Addon-operator: installs and keeps alive the add-ons of a Kubernetes cluster."""

__version__ = "0.1.0"
