"""Formats all texts that people read: commit messages, status files, plans and findings."""
