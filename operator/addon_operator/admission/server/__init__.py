"""The HTTPS server of admission, with bounds on what clients can take.

What a review is about is its handler's to know.
"""
