"""CEL, the only importer of a CEL engine: compiled once, deterministic, bounded."""
