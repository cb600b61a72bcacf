"""The rooms: each turns its own kinds into variants. No room imports another; they meet in `rules.variant`."""
