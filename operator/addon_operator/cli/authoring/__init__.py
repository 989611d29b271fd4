"""Commands for authors: new modules and hooks, checks of what is on disk, and the loop of edits."""
