"""Why a part of a schema cannot be read, on its way to the field that it is a part of."""

from __future__ import annotations

from reconciler.krm.findings import Code


class RefusalError(Exception):
    """A field cannot be read; the message completes a sentence that begins with the field."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
