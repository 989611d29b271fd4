"""JSON and YAML documents: the one reader and the one comparison.

What a document means is not known here.
"""
