"""The functions that run in process, one per file, matched by image name and version."""
