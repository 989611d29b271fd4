"""Admission: answers the API server's reviews from memory."""
