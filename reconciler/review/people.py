"""The people who review drafts in the console."""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass

MAX_IDENTITY_CHARACTERS = 200
MAX_REASON_CHARACTERS = 1_000


@dataclass(frozen=True)
class Reviewer:
    """A person who is signed in to the console.

    Attributes:
        email: The mail address. The server must have checked that it belongs to the person.
        subject: The stable ID of the person at the issuer.
        issuer: The service that identified the person. "" for local modes.
    """

    name: str
    email: str
    subject: str = ""
    issuer: str = ""
    groups: frozenset[str] = frozenset()

    @property
    def qualified_subject(self) -> str:
        """The stable ID as `<subject>@<issuer>`. It is the subject if there is no issuer."""
        subject = clean_identity_part(self.subject)
        return f"{subject}@{clean_identity_part(self.issuer)}" if subject and self.issuer else subject

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the person, which does not depend on the name. Two people have different keys."""
        return (self.issuer, self.subject) if self.subject else ("mailto:", self.email.casefold())

    @property
    def git_identity(self) -> tuple[str, str]:
        """The name and mail address of the author of a commit. Git accepts both parts."""
        email = clean_identity_part(self.email).replace(" ", "")
        name = clean_identity_part(self.name) or email or self.qualified_subject
        return name or "unknown", email or "unknown"

    @property
    def signature(self) -> str:
        """The name and mail address as `Name <address>`."""
        name, email = self.git_identity
        return f"{name} <{email}>"


def clean_identity_part(text: str) -> str:
    """Return a name or mail address without characters that a commit header must not contain, of limited length."""
    return _clean_line(text.replace("<", " ").replace(">", " "))[:MAX_IDENTITY_CHARACTERS].rstrip()


def clean_reason(text: str) -> str:
    """Return a reason without control characters other than line breaks, of limited length."""
    return "\n".join(filter(None, map(_clean_line, text.splitlines())))[:MAX_REASON_CHARACTERS].rstrip()


def _clean_line(text: str) -> str:
    """Return a text with single spaces, and without characters that terminals do not print."""
    return " ".join("".join(filter(str.isprintable, word)) for word in text.split()).strip()
