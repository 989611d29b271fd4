"""Settings: their names, their types, and which flag or variable wins."""
