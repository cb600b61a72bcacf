"""Clients for the pull requests of GitHub, GitLab and Gitea behind one Protocol.

Only this package imports an HTTP client. The decision which pull requests to open does not belong here.
"""
