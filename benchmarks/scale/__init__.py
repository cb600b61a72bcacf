"""What ten thousand packages cost, beside what the same bytes cost without us."""
