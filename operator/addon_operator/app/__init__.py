"""One operator process: its objects are made, started in order, and stopped in the reverse order."""
