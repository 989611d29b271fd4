"""What the operator shows of itself: probes, metrics, the status page, Module objects."""
