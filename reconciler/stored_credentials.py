"""The file format of git-credential-store: lines of the form `https://user:token@host[:port][/path]`.

Git remotes, chart repositories and registries use this format. This module reads no files.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.redaction import Secret, split_url

_PORTS = {"https": 443, "http": 80}
_UNSAFE = ("\n", "\r", "\0")


@dataclass(frozen=True)
class StoredCredential:
    """A user name and a password for all URLs with this scheme, host, port and path prefix ("" for all paths)."""

    scheme: str
    host: str
    port: int
    path: str
    username: str = field(repr=False)
    password: Secret

    def matches(self, url: str) -> bool:
        """Return whether these credentials are for an http or https URL.

        The path prefix must be a whole folder: `acme` matches `acme/app` and `acme.git`, but not `acme-test`.
        """
        parts = urlsplit(url)
        address = (parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0))
        return address == (self.scheme, self.host, self.port) and _is_below(unquote(parts.path).strip("/"), self.path)


def _is_below(path: str, prefix: str) -> bool:
    plain_path, plain_prefix = path.removesuffix(".git"), prefix.removesuffix(".git")
    return not plain_prefix or plain_path == plain_prefix or path.startswith(f"{plain_prefix}/")


def find_credential(text: str, url: str) -> StoredCredential | None:
    """Return the first credentials in the text of a file that match a URL. Return None if none match.

    Every password in the text is registered for redaction.
    """
    credentials = [credential for line in text.splitlines() if (credential := parse_credential(line.strip()))]
    return next((credential for credential in credentials if credential.matches(url)), None)


def parse_credential(line: str) -> StoredCredential | None:
    """Parse a line of the form `https://user:token@host[:port][/path]`. Return None for a line of any other form."""
    scheme, separator, body = line.partition("://")
    authority, slash, path = body.partition("/")
    if "@" not in authority:
        # Search for the "@" in the whole URL, because the token can contain an unescaped slash.
        parts = split_url(line)
        authority, slash, path = f"{parts.user_information}@", *parts.rest.partition("/")[1:]
        authority += parts.rest.partition("/")[0]
    user_information, at, host_and_port = authority.rpartition("@")
    username, colon, password = (unquote(part) for part in user_information.partition(":"))
    if not (separator and at and colon and username and password) or scheme.lower() not in _PORTS:
        return None
    if any(sign in username + password for sign in _UNSAFE):
        return None
    try:
        parsed = urlsplit(f"{scheme.lower()}://{host_and_port}{slash}")
        port = parsed.port or _PORTS[parsed.scheme]
    except ValueError:
        return None
    path_prefix = unquote(path).strip("/")
    return StoredCredential(parsed.scheme, parsed.hostname or "", port, path_prefix, username, Secret(password))
