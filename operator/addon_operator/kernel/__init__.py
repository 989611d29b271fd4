"""What everything may use and what uses nothing of ours: names, errors, time, quantities."""
