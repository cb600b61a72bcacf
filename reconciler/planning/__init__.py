"""What exists, what should, and what to draft: pure functions from values to a plan."""
