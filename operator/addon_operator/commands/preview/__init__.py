"""``preview``: what admission would make of a pod."""
