"""A GitOps daemon: it renders packages for clusters from a config repository, and pushes them as drafts for review."""

__version__ = "0.1.0"
