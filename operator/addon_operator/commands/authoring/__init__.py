"""New modules and hooks, written from skeletons."""
