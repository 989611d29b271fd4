"""PodPresets, pure: selection, merge and conflicts.

Pure: everything here works on decoded JSON and neither reads nor writes anything.
"""
