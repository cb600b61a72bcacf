"""The marks by which composition tells what is written: an expression in a text, and a key of somebody's own."""

from __future__ import annotations

from typing import Final

# an expression begins here (openchoreo 5.1)
OPEN: Final = "${"
# keys of this beginning are other people's, and are passed over
OWN: Final = "x-"
