"""Commands from outside: an operator is found in the cluster, and asked with the rights of the user."""
