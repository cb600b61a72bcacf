"""Computation of the plan of a pass. All functions are pure: they receive values and return values."""
