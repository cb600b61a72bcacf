"""The reasons why a person cannot sign in."""

from __future__ import annotations


class SignInError(Exception):
    """The person cannot sign in. The message contains no token, code or secret.

    Attributes:
        reason: A code for the log.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ProviderUnavailableError(SignInError):
    """The provider does not respond as expected. A later attempt can succeed."""

    def __init__(self, message: str) -> None:
        super().__init__("ProviderUnavailable", message)


class ProviderRefusedError(SignInError):
    """The provider refused a request.

    Attributes:
        code: The error code of OAuth 2.0, such as `invalid_grant`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__("ProviderRefused", message)
        self.code = code
