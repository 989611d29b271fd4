"""What modules are, pure: their files' content, their manifests, what a converge and a release need of them.

Their files are read in ``loading``; they are run in ``engine``.
"""
