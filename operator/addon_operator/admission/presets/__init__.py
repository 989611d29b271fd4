"""PodPresets of the cluster in memory, and the status written to them."""
