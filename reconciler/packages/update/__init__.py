"""Updates of whole packages: three trees in, one tree out, and what both sides changed (kpt.md 5, 6)."""
