"""What a fleet costs here, beside scripts around public tools that one would pick instead."""
