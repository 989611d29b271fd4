"""Addon-operator: installs and keeps alive the add-ons of a Kubernetes cluster."""

from typing import Final

__version__: Final = "0.1.0"
