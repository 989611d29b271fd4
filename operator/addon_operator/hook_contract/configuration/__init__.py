"""Hook configurations: what a hook prints with ``--config``.

What a binding does is not here, only what may be written.
"""
