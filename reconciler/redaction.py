"""Redaction: credentials in the text of URLs, and secret values that this process has loaded.

This module is the only place that decides which part of a URL is user information. It contains text functions and one
set of values; it reads no file and no environment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MASK = "*****"
# A shorter value would also match ordinary words, and would make every message unreadable.
MIN_SECRET_CHARACTERS = 8

_KNOWN_SCHEMES = r"https?|ssh|git|ftps?|file|git\+ssh|ssh\+git"
_START = re.compile(rf"(?:{_KNOWN_SCHEMES}):/*|[A-Za-z][A-Za-z0-9+.-]*://|//(?!/)", re.IGNORECASE)
_QUERY = re.compile(r"[?&;#][^=@]*=")
_END_OF_AUTHORITY = re.compile(r"[/?#\\]")
_DNS_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z-]*[A-Za-z]"
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\]|localhost)"
# A DNS name with a port is left out on purpose: in "first.last:80/x@host" the part before the slash may be a user
# name and the beginning of a password.
_CERTAIN_HOST = re.compile(rf"(?:{_DNS_HOST}|{_ADDRESS}(?::\d+)?)\Z")
_HOST_WITH_REST = re.compile(rf"(?:{_DNS_HOST}|{_ADDRESS})(?::\d+)?[/:]")
_SSH_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\Z")
_SCP_STYLE = re.compile(r"(?:(?P<user>[^@:/]*)@)?(?P<host>[^@:/]+|\[[0-9A-Fa-f:.]+\]):(?P<path>[^@]*)\Z")

# In running text a URL ends at white space or at a character that usually encloses it. Every expression is linear in
# the length of the text, because a remote host chooses what its messages contain.
_DELIMITERS = re.compile(r"([\s\"<>`]+)")
# After an @, "git:" is a host of that name and not a scheme.
_START_IN_TEXT = re.compile(rf"(?<!@)(?:{_KNOWN_SCHEMES}):/*|[A-Za-z][A-Za-z0-9+.-]{{0,30}}://|//", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[^A-Za-z0-9_%+.~/@-]*")
# The algorithm of an image digest is not a host: "registry:5000/image@sha256:…".
_ONE_LABEL_WITH_PATH = re.compile(
    r"(?!(?:sha\d+|md5|blake[23]\w*):)[A-Za-z0-9][A-Za-z0-9_-]{0,62}(?:/|:(?=[A-Za-z0-9._~/]))", re.IGNORECASE
)
_SECRET_PARAMETER = re.compile(
    r"(?P<name>[?&;#](?:[a-z0-9_-]{0,40}(?:token|secret|passw(?:or)?d|credential|signature|api[_-]?key)|key|sig|auth)=)"
    r"[\"'<`]?[^\s&;#\"'<>`]+",
    re.IGNORECASE,
)

_AT_SIGNS = {0xFF20: "@", 0xFE6B: "@"}
_ESCAPED_AT = re.compile(r"(\A[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/?#@]*)%40", re.IGNORECASE)

_known: set[str] = set()


@dataclass(frozen=True)
class SplitUrl:
    """A URL in three parts: everything up to the user information, the user information, and the rest.

    `user_information` is without its `@`; it is "" when the URL has none.
    """

    start: str
    user_information: str
    rest: str

    @property
    def has_credentials(self) -> bool:
        """Whether the user information may be a secret; for HTTP a bare user name may be a token, for SSH it is not."""
        is_ssh = not self.start or "ssh" in self.start.lower()
        return bool(self.user_information) and not (is_ssh and _SSH_USER.match(self.user_information))

    @property
    def redacted_rest(self) -> str:
        """The rest for a message; a mask if the last `@` may be one of a query, so that a value may follow it."""
        return MASK if _QUERY.search(self.user_information) else self.rest


def split_url(url: str) -> SplitUrl:
    """Split one URL, scp-style address or path at its user information.

    RFC 3986 ends user information at the last `@` before the first slash. Passwords with an unescaped slash, `?` or
    `#` break that rule. Therefore an `@` further on counts too, unless the text before the first slash is certainly a
    host: everything before the last `@` is user information.
    """
    # other spellings of the at sign: full width, small, and escaped in the authority, where no host has one
    url = _ESCAPED_AT.sub(r"\1@", url.translate(_AT_SIGNS))
    found = _START.match(url)
    if found is None:
        return _split_without_scheme(url)
    start, body = found[0], url[found.end() :]
    return SplitUrl(start, *_split_body(start.lower(), body))


def _split_body(start: str, body: str) -> tuple[str, str]:
    first = _END_OF_AUTHORITY.split(body, maxsplit=1)[0]
    # "file:///path" has no authority
    if "@" not in body or (start.startswith("file:") and start.endswith("///")):
        return "", body
    if "ssh" in start:
        user, at, rest = body.partition("@")
        if at and _SSH_USER.match(user) and not _split_body("", rest)[0]:
            return user, rest
    if "@" not in first and _is_at_sign_of_path(first, body):
        return "", body
    user, _, rest = body.rpartition("@")
    return user, rest


def _is_at_sign_of_path(first: str, body: str) -> bool:
    before, _, after = body.rpartition("@")
    path = before.removeprefix(first)
    return bool(_CERTAIN_HOST.match(first)) and not (":" in path or "//" in path or _HOST_WITH_REST.match(after))


def _split_without_scheme(text: str) -> SplitUrl:
    user, at, rest = text.rpartition("@")
    if not at or text.startswith(("/", "./", "../")) or text in {".", ".."}:
        return SplitUrl("", "", text)
    scp = _SCP_STYLE.match(text)
    if scp:
        return SplitUrl("", scp["user"] or "", text.partition("@")[2] if scp["user"] is not None else text)
    # a relative path may have an @ further down, unless what follows looks like a host
    is_path = "/" in user and ":" not in user and not _HOST_WITH_REST.match(rest)
    return SplitUrl("", "", text) if is_path else SplitUrl("", user, rest)


def has_credentials(url: str) -> bool:
    """Return whether a URL, scp-style address or path contains something that may be a secret."""
    parts = split_url(url)
    # SSH writes a colon after the host; therefore "token@host/path" is not an address of SSH
    is_bare = not parts.start and bool(parts.user_information) and ":" not in parts.rest.partition("/")[0]
    return parts.has_credentials or is_bare


def redact_url(url: str) -> str:
    """Return one URL for messages: without user information (except a bare SSH user), query and fragment."""
    parts = split_url(url)
    user = "" if has_credentials(url) or not parts.user_information else f"{parts.user_information}@"
    rest = re.split(r"[?#]", parts.redacted_rest, maxsplit=1)[0] if parts.start else parts.redacted_rest
    return parts.start + user + rest


def redact_urls(text: str) -> str:
    """Return running text without the user information and the secret parameters of the URLs in it."""
    # the parameters first: an @ in their values would count as the end of user information
    text = _SECRET_PARAMETER.sub(rf"\g<name>{MASK}", text) if "=" in text else text
    if _has_at_sign(text):
        text = "".join(_redact_word(word) if _has_at_sign(word) else word for word in _DELIMITERS.split(text))
    return text


def _has_at_sign(text: str) -> bool:
    return "@" in text or "%40" in text or (not text.isascii() and any(chr(sign) in text for sign in _AT_SIGNS))


def _redact_word(word: str) -> str:
    found = _START_IN_TEXT.search(word)
    if found is None:
        return _redact_bare(word)
    parts = split_url(word[found.start() :])
    kept = parts.start + parts.redacted_rest if parts.has_credentials else word[found.start() :]
    return word[: found.start()] + kept


def _redact_bare(word: str) -> str:
    """Redact a URL without a scheme. Mail addresses, digests of images and addresses of SSH stay."""
    lead = _PUNCTUATION.match(word)
    assert lead is not None
    user, _, rest = word[lead.end() :].rpartition("@")
    if user.startswith(("/", "./", "../")):
        return word
    host = _HOST_WITH_REST.match(rest) or (_ONE_LABEL_WITH_PATH.match(rest) if ":" in user else None)
    is_ssh = host is not None and host[0].endswith(":") and _SSH_USER.match(user) is not None
    return word if host is None or is_ssh else lead[0] + rest


def register_secret(value: str) -> None:
    """Note a secret value that this process has loaded, so that `redact` removes it everywhere."""
    if len(value) >= MIN_SECRET_CHARACTERS:
        _known.add(value)


def redact(text: str) -> str:
    """Return text without credentials of URLs and without any secret value that was registered."""
    # the longest first: one value may be a part of another one
    for value in sorted(_known, key=len, reverse=True):
        if value in text:
            text = text.replace(value, MASK)
    return redact_urls(text)
