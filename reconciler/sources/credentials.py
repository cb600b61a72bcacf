"""Credentials of chart repositories and registries: folders of Secrets, a credentials file, and Docker's config.json.

All files are read again after each change. Credential helpers of Docker are not supported, because this module starts
no programs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reconciler.credential_files import CredentialFile, CredentialFileError, read_file_version
from reconciler.krm.json_text import parse_json_object
from reconciler.krm.names import validate_dns_label, validate_dns_subdomain
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.artifacts import ArtifactRepository, SourceProblem
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import Secret
from reconciler.sources.addresses import (
    DOCKER_HUB_HOST,
    DOCKER_HUB_NAME,
    build_registry_origin,
    has_same_origin,
    is_below,
)
from reconciler.sources.errors import SourceError
from reconciler.sources.http_client import TlsFiles
from reconciler.stored_credentials import find_credential

_DOCKER_CONFIG_KEY = ".dockerconfigjson"
# Docker stores the credentials of Docker Hub under this key.
_DOCKER_HUB_KEY = "index.docker.io"
# Docker uses this user name if the password is an identity token. The token service of a registry exchanges the
# identity token for an access token.
_IDENTITY_TOKEN_USER = "<token>"  # noqa: S105  no secret
_TLS_KEYS = ("ca.crt", "tls.crt", "tls.key")


@dataclass(frozen=True)
class Login:
    """A user name and a password.

    Attributes:
        is_shared: Whether the login comes from a credential file in the settings, and not from the Secret of one
            repository.
    """

    username: str = field(repr=False)
    password: Secret
    is_shared: bool = False

    @property
    def is_identity_token(self) -> bool:
        """Whether the password is a refresh token for the token service of a registry (OAuth 2.0)."""
        return self.username == _IDENTITY_TOKEN_USER

    @property
    def basic_authorization(self) -> str:
        """The value of the header Authorization."""
        text = base64.b64encode(f"{self.username}:{self.password.reveal()}".encode()).decode()
        Secret(text)
        return f"Basic {text}"


class SourceCredentials:
    """The credentials of all repositories. The object is thread-safe.

    Args:
        secrets_directory: The folder with a folder `<namespace>/<name>` for each Secret. "" if there is none.
        credentials_file: A file in the format of git-credential-store. "" if there is none.
        docker_config: A file `config.json` of Docker. "" if there is none.
    """

    def __init__(self, secrets_directory: str = "", credentials_file: str = "", docker_config: str = "") -> None:
        self._secrets_directory = secrets_directory
        self._credentials_file = credentials_file
        self._docker_config = docker_config
        self._files: dict[Path, CredentialFile] = {}

    def find_login(self, repository: ArtifactRepository, url: str, index_url: str = "") -> Login | None:
        """Return the credentials for an http or https URL. Return None if there are none.

        There are two sources of credentials:

        1. The Secret of the repository. It is used if `url` is on the host of the repository. With the option
           `pass_credentials` of the repository, it is used for all hosts.
        2. The credential files in the settings. They are used if they contain credentials for the host and path of
           `url`. However, a `url` that comes from a chart index must be below `index_url`, unless the repository has
           the option `pass_credentials`. Without this rule, the author of an index could read all repositories for
           which the settings contain credentials.

        Args:
            index_url: The URL of the chart repository whose index contains `url`. "" if `url` comes from the config.

        Raises:
            SourceError: `SourceUnauthorized` if a file is missing or not valid.
        """
        if repository.secret_name and (repository.pass_credentials or _is_on_host(repository, url)):
            return self._find_login_in_secret(repository, url)
        if index_url and not repository.pass_credentials and not is_below(url, index_url):
            return None
        login = self._find_login_in_settings(url)
        return replace(login, is_shared=True) if login else None

    def find_tls(self, repository: ArtifactRepository) -> TlsFiles:
        """Return the certificates of a repository. Raises SourceError."""
        paths = dict.fromkeys(_TLS_KEYS, "")
        for name in filter(None, (repository.secret_name, repository.cert_secret_name)):
            folder = self.find_secret_folder(repository.namespace, name)
            paths |= {key: str(folder / key) for key in _TLS_KEYS if (folder / key).is_file()}
        authority, certificate, key = (paths[name] for name in _TLS_KEYS)
        if bool(certificate) != bool(key):
            raise _create_error(f"{certificate or key}: the Secret must contain both tls.crt and tls.key")
        versions = [read_file_version(Path(path)) for path in (authority, certificate, key) if path]
        return TlsFiles(authority, certificate, key, str(versions)) if versions else TlsFiles()

    def find_secret_folder(self, namespace: str, name: str) -> Path:
        """Return the folder with the keys of a Secret. Raises SourceError."""
        if not self._secrets_directory:
            raise _create_error(
                f"the Secret {namespace}/{name} cannot be read. Next step: set `sources.secrets_directory`"
            )
        if validate_dns_label(namespace) or validate_dns_subdomain(name):
            raise _create_error(f"the Secret {namespace}/{name} has an invalid name")
        folder = Path(self._secrets_directory).expanduser() / namespace / name
        if not folder.is_dir():
            raise _create_error(
                f"the Secret {namespace}/{name} does not exist. Next step: create the folder {folder} with the keys of"
                " the Secret as files"
            )
        return folder

    def list_notes(self, url: str) -> tuple[SourceProblem, ...]:
        """Return a note if the file `docker_config` names a credential helper for a URL.

        The note states that the credential helper has no effect.
        """
        if not self._docker_config:
            return ()
        file = Path(self._docker_config).expanduser()
        config = _parse_docker_config(self._read(file), file)
        helpers = config.get("credHelpers")
        is_named = isinstance(helpers, dict) and any(_matches_docker_key(key, url) for key in helpers)
        if (not config.get("credsStore") and not is_named) or _find_docker_login(config, url):
            return ()
        message = (
            f"{file}: `credHelpers` and `credsStore` are ignored for {urlsplit(url).hostname}, because the reconciler "
            "starts no credential helpers: put the credentials into `auths`, or use `sources.credentials_file`"
        )
        return (SourceProblem(SourceCodes.CREDENTIAL_HELPER_IGNORED.name, message),)

    def _find_login_in_secret(self, repository: ArtifactRepository, url: str) -> Login | None:
        folder = self.find_secret_folder(repository.namespace, repository.secret_name)
        if (folder / _DOCKER_CONFIG_KEY).is_file():
            file = folder / _DOCKER_CONFIG_KEY
            return _find_docker_login(_parse_docker_config(self._read(file), file), url)
        if not (folder / "username").is_file() and not (folder / "password").is_file():
            # Return no login: a Secret with certificates, but without username and password, is valid.
            return None
        username, password = (self._read(folder / key).rstrip("\r\n") for key in ("username", "password"))
        return _create_login(username, password, folder)

    def _find_login_in_settings(self, url: str) -> Login | None:
        if self._credentials_file:
            found = find_credential(self._read(Path(self._credentials_file).expanduser()), url)
            if found:
                return Login(found.username, found.password)
        if self._docker_config:
            file = Path(self._docker_config).expanduser()
            return _find_docker_login(_parse_docker_config(self._read(file), file), url)
        return None

    def _read(self, file: Path) -> str:
        try:
            return self._files.setdefault(file, CredentialFile(file)).read()
        except CredentialFileError as error:
            raise _create_error(str(error)) from None


def _parse_docker_config(text: str, file: Path) -> Mapping[str, Any]:
    config = parse_json_object(text)
    if config is None:
        raise _create_error(f"{file} must contain a JSON object in the format of Docker's config.json")
    return config


def _find_docker_login(config: Mapping[str, Any], url: str) -> Login | None:
    """Return the credentials in `auths` for a URL. If several keys match the URL, use the longest key.

    A key without credentials is skipped. Return None if no matching key has credentials.
    """
    auths = config.get("auths")
    entries = auths.items() if isinstance(auths, dict) else ()
    matches = [(len(key), entry) for key, entry in entries if isinstance(entry, dict) and _matches_docker_key(key, url)]
    for _, entry in sorted(matches, key=lambda match: -match[0]):
        if identity_token := str(entry.get("identitytoken") or ""):
            return _create_login(_IDENTITY_TOKEN_USER, identity_token, "auths")
        username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
        if encoded := entry.get("auth"):
            username, password = _decode_auth(str(encoded))
        if username and password:
            return _create_login(username, password, "auths")
    return None


def _matches_docker_key(key: str, url: str) -> bool:
    """Return whether a key of `auths`, such as `registry.example.com/team`, matches a URL."""
    location = key.partition("://")[2] or key
    host, _, path = location.partition("/")
    # Old versions of Docker add the version of the API to the key.
    path = path.strip("/").removeprefix("v1").removeprefix("v2").strip("/")
    host = DOCKER_HUB_HOST if host in {_DOCKER_HUB_KEY, DOCKER_HUB_NAME} else host
    parts = urlsplit(url)
    if not has_same_origin(f"{parts.scheme}://{host}", url):
        return False
    url_path = parts.path.removeprefix("/v2/").strip("/")
    return not path or url_path == path or url_path.startswith(f"{path}/")


def _decode_auth(text: str) -> tuple[str, str]:
    try:
        username, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise _create_error("a field `auth` of Docker's config.json must be user:password in base64") from None
    # Remove the zero bytes that Docker adds to the password.
    return username, password.strip("\0")


def _create_login(username: str, password: str, place: object) -> Login:
    secret = Secret(password)
    if not username or not password or not (username + password).isprintable():
        raise _create_error(f"{place}: `username` and `password` must be texts without line breaks, and not empty")
    return Login(username, secret)


def _is_on_host(repository: ArtifactRepository, url: str) -> bool:
    """Return whether a URL is on the host of a repository.

    Without `pass_credentials`, the Secret of the repository is used only for this host.
    """
    first = repository.url
    if repository.is_registry:
        first = build_registry_origin(urlsplit(first).netloc, is_insecure=repository.insecure)
    return has_same_origin(first, url)


def _create_error(message: str) -> SourceError:
    return SourceError(SourceCodes.SOURCE_UNAUTHORIZED.name, message)
