"""Credentials: from the pod's service account or a kubeconfig.

No request is made here.
"""
