"""A GitOps daemon: package variants from a config repository to drafts on cluster branches."""

__version__ = "0.1.0"
# what a pass reads lives to its end, without cycles: looking for some after every 700 values is an eighth of its time
VALUES_BETWEEN_COLLECTIONS = 50_000
