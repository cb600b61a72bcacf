"""Plain resources on their way to clusters: who says where they go, and the packages they make (design 3, 10.32)."""
