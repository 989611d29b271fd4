"""PodPresets: which pods they match, what they add to a pod, and what stands in the way.

Pure: everything here works on decoded JSON and neither reads nor writes anything.
"""
