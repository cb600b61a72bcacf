"""The only door to Git: bare mirrors, bulk reads and writes, atomic pushes. No work tree, no HEAD, no index."""
