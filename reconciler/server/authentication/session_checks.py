"""Updates the sessions of people with data from their OpenID Connect provider.

During a session, the groups of the person can change. A session also ends if the provider requests this.
"""

from __future__ import annotations

from reconciler.server.authentication.errors import ProviderRefusedError, ProviderUnavailableError, SignInError
from reconciler.server.authentication.id_tokens import CLOCK_SKEW_SECONDS
from reconciler.server.authentication.oidc import EndedSessions, OidcProvider
from reconciler.server.authentication.session_store import SessionStore, StoredSession
from reconciler.telemetry.event_log import log

# RFC 6749: these errors come from the client or the provider, and not from the person. Therefore, they end no session.
# All other errors end the session. They are not listed, because providers use different codes for a refused person or
# token, such as `invalid_grant` or (Dex) `invalid_request`.
_ERRORS_OF_SERVICES = frozenset({
    "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "server_error",
    "temporarily_unavailable", "slow_down",
})  # fmt: skip


class SessionChecks:
    """Reads the groups of people again, every 15 minutes, if the provider has issued a refresh token."""

    def __init__(self, store: SessionStore, provider: OidcProvider) -> None:
        self._store = store
        self._provider = provider

    def check(self, identifier: str) -> None:
        """Check the person of a session if a check is due. End the session if the provider rejects the person.

        Until the check is complete, other requests of the session use the known groups.
        """
        session = self._store.start_check(identifier)
        if session is None or session.person.issuer != self._provider.issuer:
            return
        subject = session.person.qualified_subject
        try:
            person = self._provider.refresh(
                session.person, session.refresh_token, lambda token: self._store.replace_token(identifier, token)
            )
        except SignInError as error:
            if _is_temporary(error):
                self._store.postpone_check(identifier)
                log.warning("session_check_failed", subject=subject, reason=error.reason, message=str(error))
            else:
                self._store.delete(identifier)
                log.warning("session_revoked", subject=subject, reason=error.reason, message=str(error))
            return
        self._store.complete_check(identifier, person)

    def end(self, token: str) -> None:
        """End the sessions that a logout token of the provider refers to.

        Raises:
            SignInError: The token is not valid.
        """
        ended = self._provider.read_logout(token)
        count = self._store.delete_matching(lambda session: _is_ended(session, ended))
        subject = f"{ended.subject}@{ended.issuer}" if ended.subject else ""
        log.info("back_channel_logout_completed", subject=subject, sessions=count)


def _is_temporary(error: SignInError) -> bool:
    """Return whether a later check can succeed, for example after an operator has corrected the client secret."""
    if isinstance(error, ProviderRefusedError):
        return error.code in _ERRORS_OF_SERVICES
    return isinstance(error, ProviderUnavailableError) or error.reason == "SecretUnreadable"


def _is_ended(session: StoredSession, ended: EndedSessions) -> bool:
    # A replayed logout token must not end a session that is newer than the token.
    is_older = session.created_at <= ended.issued_at + CLOCK_SKEW_SECONDS
    if session.person.issuer != ended.issuer or not is_older:
        return False
    # If the provider did not send the ID of its session at the sign-in, end all sessions of the person.
    if ended.provider_session and (session.provider_session or not ended.subject):
        return session.provider_session == ended.provider_session
    return session.person.subject == ended.subject
