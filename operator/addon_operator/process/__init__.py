"""Programs that the operator starts."""
