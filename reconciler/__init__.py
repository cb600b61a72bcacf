"""A GitOps daemon: package variants from a config repository to drafts on cluster branches."""

__version__ = "0.1.0"
