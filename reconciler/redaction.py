"""Redaction of secrets in output: credentials in URLs, registered secret values, and values of Kubernetes Secrets.

Only this module decides which part of a URL is the user information. It reads no files and no environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, NoReturn

from reconciler.lazy_dataclasses import dataclass

MASK = "*****"
# Do not mask values with fewer characters, because such values also occur in ordinary words.
MIN_SECRET_CHARACTERS = 8

_KNOWN_SCHEMES = r"https?|ssh|git|ftps?|file|git\+ssh|ssh\+git"
_START = re.compile(rf"(?:{_KNOWN_SCHEMES}):/*|[A-Za-z][A-Za-z0-9+.-]*://|//(?!/)", re.IGNORECASE)
_QUERY = re.compile(r"[?&;#][^=@]*=")
_END_OF_AUTHORITY = re.compile(r"[/?#\\]")
_DNS_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z-]*[A-Za-z]"
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\]|localhost)"
# Exclude a DNS name with a port, because "first.last:80" in "first.last:80/x@host" may be a user name and the start of
# a password.
_UNAMBIGUOUS_HOST = re.compile(rf"(?:{_DNS_HOST}|{_ADDRESS}(?::\d+)?)\Z")
_HOST_AND_SEPARATOR = re.compile(rf"(?:{_DNS_HOST}|{_ADDRESS})(?::\d+)?[/:]")
_SSH_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\Z")
_SCP_STYLE = re.compile(r"(?:(?P<user>[^@:/]*)@)?(?P<host>[^@:/]+|\[[0-9A-Fa-f:.]+\]):(?P<path>[^@]*)\Z")

# In a text, a URL ends at white space or at a character that usually encloses a URL. All regular expressions here take
# linear time, because a remote host controls the text of its messages.
_DELIMITERS = re.compile(r"([\s\"<>`]+)")
# Do not match "git:" after "@" as a scheme, because it is a host name there.
_URL_START_IN_TEXT = re.compile(rf"(?<!@)(?:{_KNOWN_SCHEMES}):/*|[A-Za-z][A-Za-z0-9+.-]{{0,30}}://|//", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[^A-Za-z0-9_%+.~/@-]*")
# Do not match the algorithm of an image digest as a host, e.g. "sha256:" in "registry:5000/image@sha256:…".
_SINGLE_LABEL_HOST_AND_SEPARATOR = re.compile(
    r"(?!(?:sha\d+|md5|blake[23]\w*):)[A-Za-z0-9][A-Za-z0-9_-]{0,62}(?:/|:(?=[A-Za-z0-9._~/]))", re.IGNORECASE
)
_SECRET_PARAMETER = re.compile(
    r"(?P<name>[?&;#](?:[a-z0-9_-]{0,40}(?:token|secret|passw(?:or)?d|credential|signature|api[_-]?key)|key|sig|auth)=)"
    r"[\"'<`]?[^\s&;#\"'<>`]+",
    re.IGNORECASE,
)

_AT_SIGNS = {0xFF20: "@", 0xFE6B: "@"}
_ESCAPED_AT = re.compile(r"(\A[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/?#@]*)%40", re.IGNORECASE)


@dataclass(frozen=True)
class SplitUrl:
    """The three parts of a URL: `start`, the user information, and `rest`.

    `user_information` does not include "@". It is "" if the URL contains no user information.
    """

    start: str
    user_information: str
    rest: str

    @property
    def has_credentials(self) -> bool:
        """Whether the user information may contain a secret.

        In an HTTP URL, a user name alone may be a token. In an SSH URL, a user name alone is not a secret.
        """
        is_ssh = not self.start or "ssh" in self.start.lower()
        return bool(self.user_information) and not (is_ssh and _SSH_USER.match(self.user_information))

    @property
    def redacted_rest(self) -> str:
        """The text after the user information, for messages. If the last "@" may belong to a query, this text is
        masked.
        """
        return MASK if _QUERY.search(self.user_information) else self.rest


def split_url(url: str) -> SplitUrl:
    """Split a URL, scp-style address or path into the parts before and after its user information.

    RFC 3986 ends the user information at the last "@" before the first slash. However, a password may contain an
    unescaped slash, "?" or "#". Therefore, all text before the last "@" is treated as user information, unless the text
    before the first slash is certainly a host.
    """
    # Replace other forms of "@" first: the full-width and small characters, and "%40" before the first slash, where it
    # cannot be part of a host.
    url = _ESCAPED_AT.sub(r"\1@", url.translate(_AT_SIGNS))
    match = _START.match(url)
    if match is None:
        return _split_without_scheme(url)
    start, body = match[0], url[match.end() :]
    return SplitUrl(start, *_split_after_scheme(start.lower(), body))


def _split_after_scheme(start: str, body: str) -> tuple[str, str]:
    authority = _END_OF_AUTHORITY.split(body, maxsplit=1)[0]
    # Skip URLs such as "file:///path", because they have no host and no user information.
    if "@" not in body or (start.startswith("file:") and start.endswith("///")):
        return "", body
    if "ssh" in start:
        user, at, rest = body.partition("@")
        if at and _SSH_USER.match(user) and not _split_after_scheme("", rest)[0]:
            return user, rest
    if "@" not in authority and _is_at_sign_of_path(authority, body):
        return "", body
    user, _, rest = body.rpartition("@")
    return user, rest


def _is_at_sign_of_path(authority: str, body: str) -> bool:
    before, _, after = body.rpartition("@")
    path = before.removeprefix(authority)
    return bool(_UNAMBIGUOUS_HOST.match(authority)) and not (
        ":" in path or "//" in path or _HOST_AND_SEPARATOR.match(after)
    )


def _split_without_scheme(text: str) -> SplitUrl:
    user, at, rest = text.rpartition("@")
    if not at or text.startswith(("/", "./", "../")) or text in {".", ".."}:
        return SplitUrl("", "", text)
    scp = _SCP_STYLE.match(text)
    if scp:
        return SplitUrl("", scp["user"] or "", text.partition("@")[2] if scp["user"] is not None else text)
    # Treat the text as a path if the text after "@" does not look like a host, because a relative path may contain "@".
    is_path = "/" in user and ":" not in user and not _HOST_AND_SEPARATOR.match(rest)
    return SplitUrl("", "", text) if is_path else SplitUrl("", user, rest)


def has_credentials(url: str) -> bool:
    """Return whether the user information of a URL, scp-style address or path may contain a secret."""
    if not _has_at_sign(url):
        return False
    parts = split_url(url)
    # In "token@host/path", treat the text before "@" as a secret. It is not the user of an SSH address, because an SSH
    # address has a colon after the host.
    is_other_user = not parts.start and bool(parts.user_information) and ":" not in parts.rest.partition("/")[0]
    return parts.has_credentials or is_other_user


def redact_url(url: str) -> str:
    """Return a URL for messages, without user information, query and fragment. The user name of an SSH URL is kept."""
    parts = split_url(url)
    user = "" if has_credentials(url) or not parts.user_information else f"{parts.user_information}@"
    rest = re.split(r"[?#]", parts.redacted_rest, maxsplit=1)[0] if parts.start else parts.redacted_rest
    return parts.start + user + rest


def redact_urls(text: str) -> str:
    """Return a text in which credentials and secret query parameters of URLs are removed or masked."""
    # Mask parameters first, because "@" in their values would be treated as the end of user information.
    text = _SECRET_PARAMETER.sub(rf"\g<name>{MASK}", text) if "=" in text else text
    if _has_at_sign(text):
        text = "".join(_redact_word(word) if _has_at_sign(word) else word for word in _DELIMITERS.split(text))
    return text


def _has_at_sign(text: str) -> bool:
    return "@" in text or "%40" in text or (not text.isascii() and any(chr(sign) in text for sign in _AT_SIGNS))


def _redact_word(word: str) -> str:
    match = _URL_START_IN_TEXT.search(word)
    if match is None:
        return _redact_without_scheme(word)
    before, url = word[: match.start()], word[match.start() :]
    parts = split_url(url)
    return before + (parts.start + parts.redacted_rest if parts.has_credentials else url)


def _redact_without_scheme(word: str) -> str:
    """Remove user information from a word without a URL scheme. Keep mail addresses, digests and SSH addresses."""
    punctuation = _PUNCTUATION.match(word)
    assert punctuation is not None
    user, _, rest = word[punctuation.end() :].rpartition("@")
    if user.startswith(("/", "./", "../")):
        return word
    host = _HOST_AND_SEPARATOR.match(rest) or (_SINGLE_LABEL_HOST_AND_SEPARATOR.match(rest) if ":" in user else None)
    is_ssh = host is not None and host[0].endswith(":") and _SSH_USER.match(user) is not None
    return word if host is None or is_ssh else punctuation[0] + rest


class _SecretRegistry:
    """The secret values of this process. The object is thread-safe.

    Attributes:
        values: The values, longest first, because a short value may be a part of a longer value.
    """

    def __init__(self) -> None:
        self.values: tuple[str, ...] = ()
        self._lock = Lock()

    def update(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> None:
        with self._lock:
            self.values = tuple(sorted({*self.values, *added} - {*removed}, key=len, reverse=True))


_registry = _SecretRegistry()


class Secret:
    """A secret value that no `repr`, message or pickle contains. `reveal` returns the value.

    The value and its form in URLs are registered, so that `redact` masks them in all output of this process.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        register_secret(*self._list_forms())

    def reveal(self) -> str:
        """Return the secret value."""
        return self._value

    def unregister(self) -> None:
        """Do not mask the value any more, because the secret has expired."""
        _registry.update(removed=self._list_forms())

    def _list_forms(self) -> tuple[str, str]:
        # Import the function here, because most commands load no secret and start faster without the import.
        from urllib.parse import quote

        return self._value, quote(self._value, safe="", errors="surrogateescape")

    def __repr__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret must not be pickled, because a pickle contains its value")


def register_secret(*values: str) -> None:
    """Register secret values, so that `redact` masks them in all output of this process."""
    new = {value for value in values if len(value) >= MIN_SECRET_CHARACTERS}
    if not new.issubset(_registry.values):
        _registry.update(added=new)


def redact(text: str) -> str:
    """Return a text in which URL credentials are removed and registered secret values are masked."""
    for value in _registry.values:
        if value in text:
            text = text.replace(value, MASK)
    return redact_urls(text)


def redact_data(value: Any) -> Any:
    """Return a copy of JSON-like data in which `redact` is applied to all keys and texts.

    Other objects become texts.
    """
    match value:
        case str():
            return redact(value)
        case dict():
            return {redact_data(key): redact_data(inner) for key, inner in value.items()}
        case list() | tuple():
            return [redact_data(inner) for inner in value]
        case None | bool() | int() | float():
            return value
        case _:
            return redact(str(value))


LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
SECRET_VALUE_FIELDS = ("data", "stringData")
SEALED_DATA = ("spec", "encryptedData")
_ANNOTATIONS = ("metadata", "annotations")
_SECRET_KIND_LINE = re.compile(r"""kind["']?\s*:\s*["']?(?:Sealed)?Secret\b""")


def is_secret(data: object) -> bool:
    """Return whether the data is a manifest of kind Secret in the core group."""
    return isinstance(data, Mapping) and data.get("kind") == "Secret" and "/" not in str(data.get("apiVersion", ""))


def is_sealed_secret(data: object) -> bool:
    """Return whether the data is a manifest of kind SealedSecret, whose `spec.encryptedData` contains ciphertexts."""
    if not isinstance(data, Mapping) or data.get("kind") != "SealedSecret":
        return False
    return str(data.get("apiVersion", "")).startswith("bitnami.com/")


def contains_secret(data: object) -> bool:
    """Return whether the data contains a Secret or a SealedSecret.

    The data can be the manifest itself, data that contains the manifest, or the text of the manifest.
    """
    if isinstance(data, str):
        return is_secret_manifest_text(data)
    if isinstance(data, Mapping):
        return is_secret(data) or is_sealed_secret(data) or any(map(contains_secret, data.values()))
    return isinstance(data, list) and any(map(contains_secret, data))


def is_secret_path(path: Sequence[str | int]) -> bool:
    """Return whether a field of a Secret may contain secret values.

    These fields are `data`, `stringData` and kubectl's last-applied annotation. The whole `metadata.annotations` is
    included, because it contains this annotation.
    """
    return path[0] in SECRET_VALUE_FIELDS or path[-1] == LAST_APPLIED_ANNOTATION or tuple(path) == _ANNOTATIONS


def is_sealed_path(path: Sequence[str | int]) -> bool:
    """Return whether a field of a SealedSecret contains ciphertexts: `spec`, `spec.encryptedData`, or a field in it."""
    return tuple(path[:2]) == SEALED_DATA[: len(path)]


def is_secret_value(data: object, path: Sequence[str | int]) -> bool:
    """Return whether the value at a path is a secret value. The data can be a Secret or can contain a Secret."""
    value: object = data
    for index, step in enumerate(path):
        if is_secret(value) and is_secret_path(path[index:]):
            return True
        if is_sealed_secret(value) and is_sealed_path(path[index:]):
            return True
        value = _find_child(value, step)
    return False


def _find_child(data: object, step: str | int) -> object:
    if isinstance(data, Mapping):
        return data.get(step)
    return data[step] if isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data) else None


_PLUGIN_GROUP = "greenhouse.sap/"
_OPTION_VALUES = ("spec", "optionValues")


def list_secret_options(*manifests: object) -> frozenset[str]:
    """Return the names of the options that refer to a Secret in at least one version of a Greenhouse Plugin.

    A person can replace such a reference with the secret value itself. The version with the reference then shows that
    the value in the other version is secret.

    Args:
        manifests: The versions of the Plugin.
    """
    return frozenset(
        str(option.get("name"))
        for manifest in manifests
        for option in _list_options(manifest)
        if isinstance(option, Mapping) and isinstance(option.get("valueFrom"), Mapping)
    )


def _list_options(manifest: object) -> Sequence[object]:
    if not isinstance(manifest, Mapping) or manifest.get("kind") != "Plugin":
        return ()
    value: object = manifest if str(manifest.get("apiVersion", "")).startswith(_PLUGIN_GROUP) else {}
    for name in _OPTION_VALUES:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else ()


def mask_options(manifest: Any, options: Collection[str]) -> Any:
    """Return a Plugin in which the plain values of these options are masked. Return other data unchanged."""
    if not options or not _list_options(manifest):
        return manifest
    masked = [
        {**option, "value": MASK}
        if isinstance(option, Mapping) and option.get("name") in options and "value" in option
        else option
        for option in _list_options(manifest)
    ]
    return {**manifest, _OPTION_VALUES[0]: {**manifest[_OPTION_VALUES[0]], _OPTION_VALUES[1]: masked}}


def is_option_path(path: Sequence[str], options: Collection[str]) -> bool:
    """Return whether a field of a Plugin can contain the value of one of these options.

    Args:
        path: The path of the field. The segment `[name]` selects the option with this name.
    """
    if not options or tuple(path[:2]) != _OPTION_VALUES:
        return False
    return len(path) == 2 or (path[2][1:-1] in options and path[3:4] != ("valueFrom",))


def is_secret_manifest_text(text: str) -> bool:
    """Return whether a text may be the manifest of a Secret or a SealedSecret. The text is not parsed."""
    return _SECRET_KIND_LINE.search(text) is not None


HIDDEN_CIPHERTEXT = "ENC[…]"
_CIPHERTEXT = re.compile(r"ENC\[AES256_GCM,data:[^\[\]]*,iv:[^\[\]]*,tag:[^\[\]]*,type:[a-z]+\]")


def is_ciphertext(value: object) -> bool:
    """Return whether a value is a ciphertext that SOPS wrote."""
    return isinstance(value, str) and value.startswith("ENC[") and _CIPHERTEXT.fullmatch(value) is not None


def hide_ciphertexts(value: Any) -> Any:
    """Return data or a text in which each ciphertext of SOPS is replaced by `ENC[…]`."""
    match value:
        case str():
            return _CIPHERTEXT.sub(HIDDEN_CIPHERTEXT, value) if "ENC[" in value else value
        case dict():
            return {key: hide_ciphertexts(inner) for key, inner in value.items()}
        case list():
            return [hide_ciphertexts(inner) for inner in value]
        case _:
            return value
