"""A GitOps daemon that renders package variants from a config repository to drafts of target branches."""

__version__ = "0.1.0"
