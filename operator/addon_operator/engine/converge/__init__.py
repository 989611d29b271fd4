"""Converge: brings the cluster to what the sources say."""
