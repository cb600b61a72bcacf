"""Cost of ten thousand packages, compared with the floor for the same bytes."""
