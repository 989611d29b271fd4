"""Objects that the operator writes: CRDs, Events, the Lease, patches of hooks."""
