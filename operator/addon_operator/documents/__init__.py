"""JSON and YAML documents: the one reader and the one comparison."""
