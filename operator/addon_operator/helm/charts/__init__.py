"""Charts on disk: their files, their subcharts, and what their templates ask for.

No Helm runs here, and nothing is fetched.
"""
