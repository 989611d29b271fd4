"""Follows objects of the API for many subscribers with as few watches as possible."""

from addon_operator.kube.object_changes import Change, ChangeType, Listener, ObjectKey, Subscription
from addon_operator.kube.object_selections import ObjectSelection

__all__ = ["Change", "ChangeType", "Listener", "ObjectKey", "ObjectSelection", "Subscription"]
