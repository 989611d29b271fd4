"""Hook configurations: what a hook prints with ``--config``."""
