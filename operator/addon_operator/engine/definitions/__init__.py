"""Definitions: CustomResourceDefinitions of modules, applied, shared out and restored.

Which of several definitions counts is decided in ``modules``.
"""
