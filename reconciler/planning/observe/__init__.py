"""The data of a target before the decisions: its branches, its published packages and its recorded state."""
