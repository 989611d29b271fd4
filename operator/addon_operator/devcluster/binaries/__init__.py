"""The control plane's binaries: found, downloaded or built."""
