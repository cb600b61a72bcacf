"""Every word a person reads: commit messages, status files, plans, findings. Pure functions from values to text."""
