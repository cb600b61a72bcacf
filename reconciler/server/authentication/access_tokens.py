"""Access tokens of programs: their creation, and the file with their digests.

Each line of the file has the form `name:role:selector:digest:expiry`. The file contains no tokens.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from reconciler.credential_files import SecretFileError
from reconciler.krm.field_text import describe_choice
from reconciler.krm.selectors import parse_label_query
from reconciler.krm.times import format_rfc3339, parse_rfc3339_seconds
from reconciler.lazy_dataclasses import dataclass
from reconciler.review.permissions import ROLES, Permissions, RoleRule

PREFIX = "rcr_"
NEVER = "never"
_RANDOM_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELD_COUNT = 5


@dataclass(frozen=True)
class AccessToken:
    """A line of the file.

    Attributes:
        digest: The SHA-256 digest of the token, as hexadecimal digits.
        expires_at: Seconds since 1970. None if the token does not expire.
        selector: The label query of the targets. "" for all targets.
    """

    name: str
    permissions: Permissions
    digest: str
    expires_at: int | None
    selector: str = ""


def create_token() -> str:
    """Return a new random token."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def compute_digest(token: str) -> str:
    """Return the digest of a token."""
    return sha256(token.encode()).hexdigest()


def format_line(name: str, role: str, selector: str, token: str, expires_at: int | None) -> str:
    """Return the line of the file for a token.

    Raises:
        ValueError: A value is not allowed. The message contains the name of the value.
    """
    expiry = NEVER if expires_at is None else format_rfc3339(expires_at)
    fields = (name, role, selector, compute_digest(token), expiry)
    _parse_fields(*fields)
    return ":".join(fields)


def parse_line(line: str) -> AccessToken:
    """Return the token that a line describes.

    Raises:
        ValueError: The line is not valid. The message contains no part of the line, because it can contain a secret.
    """
    fields = line.split(":", _FIELD_COUNT - 1)
    if len(fields) != _FIELD_COUNT:
        raise ValueError(
            "the line must have the form name:role:selector:sha256(token):expiry; create it with"
            " `reconciler token create`"
        )
    return _parse_fields(*fields)


def _parse_fields(name: str, role_name: str, selector: str, digest: str, expiry: str) -> AccessToken:
    if not _NAME.fullmatch(name):
        raise ValueError("name: must consist of 1 to 63 letters, digits, `-`, `_` and `.`")
    role = next((role for role in ROLES if role == role_name), None)
    if role is None:
        raise ValueError(f"role: must be {describe_choice(ROLES)}")
    if role == "admin" and selector:
        raise ValueError("selector: must be empty for the role admin, which applies to all targets")
    try:
        targets = parse_label_query(selector)
    except ValueError:
        raise ValueError("selector: must be a label query such as stage=prod, or empty for all targets") from None
    if not _DIGEST.fullmatch(digest):
        raise ValueError("sha256(token): must be the SHA-256 digest of the token, as 64 lower-case hexadecimal digits")
    return AccessToken(name, Permissions((RoleRule(role, targets=targets),)), digest, _parse_expiry(expiry), selector)


def _parse_expiry(text: str) -> int | None:
    if text == NEVER:
        return None
    try:
        return parse_rfc3339_seconds(text)
    except ValueError:
        raise ValueError(f"expiry: must be a time such as 2027-01-31T00:00:00Z, or `{NEVER}`") from None


def read_token_file(file: Path) -> Mapping[str, AccessToken]:
    """Read a token file. Return a mapping from token digests to tokens.

    Empty lines, and lines that start with `#`, are ignored.

    Raises:
        SecretFileError: The file cannot be read, or a line is not valid.
    """
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise SecretFileError(f"{file}: the token file must be readable: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SecretFileError(f"{file}: the token file must be UTF-8 text") from None
    names: set[str] = set()
    tokens: dict[str, AccessToken] = {}
    for number, token in _parse_lines(file, text):
        if token.name in names or token.digest in tokens:
            raise SecretFileError(
                f"{file}:{number}: an earlier line has the same token name or digest; both must be unique in the file"
            )
        names.add(token.name)
        tokens[token.digest] = token
    return tokens


def _parse_lines(file: Path, text: str) -> Iterator[tuple[int, AccessToken]]:
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            try:
                yield number, parse_line(stripped)
            except ValueError as error:
                raise SecretFileError(f"{file}:{number}: {error}") from None
