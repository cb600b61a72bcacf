"""The situation of a target before a decision: its branches, its published packages, and its recovered state."""
