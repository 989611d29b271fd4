"""The HTTPS server of admission, with bounds on what clients can take."""
