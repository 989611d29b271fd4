"""Objects that the operator writes: CRDs, Events, the Lease, patches of hooks.

What hooks and modules want of them is read elsewhere.
"""
