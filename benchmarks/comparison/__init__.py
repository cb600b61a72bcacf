"""Comparison of the costs of a fleet with scripts around public tools."""
