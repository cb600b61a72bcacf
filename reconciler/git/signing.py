"""Signing keys for commits and tags: SSH keys and OpenPGP keys.

`ssh_signatures` signs in this process. All other keys need one process per signature: `ssh-keygen` or `gpg`.
"""

from __future__ import annotations

import os
import subprocess
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Literal, Protocol

from reconciler.credential_files import get_file_version
from reconciler.git.errors import SigningFailedError
from reconciler.git.ssh_signatures import (
    SSH_NAMESPACE,
    RawSigner,
    SshKeyFile,
    create_ssh_signature,
    load_raw_signer,
    parse_ssh_key_file,
)
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import redact
from reconciler.telemetry.progress import progress

SignedKind = Literal["commits", "tags"]
_MAX_CACHED_SIGNATURES = 20_000
_INHERITED_VARIABLES = ("PATH", "HOME", "SSH_AUTH_SOCK", "GNUPGHOME")


@dataclass(frozen=True)
class SigningOptions:
    """The values of the settings group `signing` that are necessary to sign.

    Attributes:
        key_file: The SSH key file, if `format` is `ssh`.
        key_id: The key of gpg, if `format` is `openpgp`.
        gnupg_home: The folder of gpg. None means the default of gpg.
        kinds: The kinds of objects that are signed.
        timeout_seconds: The time limit of one process that signs.
    """

    format: Literal["ssh", "openpgp"]
    key_file: str = ""
    key_id: str = ""
    gnupg_home: str | None = None
    kinds: frozenset[SignedKind] = frozenset({"commits", "tags"})
    timeout_seconds: float = 120


class SigningKey(Protocol):
    """A key that signs objects."""

    @property
    def is_deterministic(self) -> bool:
        """Whether equal objects always have equal signatures, so that they have equal IDs."""
        ...

    @property
    def description(self) -> str:
        """The type of the key, for messages."""
        ...

    @property
    def allowed_signers(self) -> str:
        """The content of an allowed signers file with which git accepts the signatures. "" for OpenPGP keys."""
        ...

    def sign(self, payload: bytes) -> bytes:
        """Return the armored signature of the content of an object. Raises SigningFailedError."""
        ...


class Signer:
    """Gives access to the signing key. A changed key file is read again. Several threads can use one object."""

    def __init__(self, options: SigningOptions) -> None:
        self.options = options
        self._lock = Lock()
        self._key: SigningKey | None = None
        self._version: tuple[int, ...] = ()

    def load_key(self) -> SigningKey:
        """Return the current signing key.

        Raises:
            SigningFailedError: The key cannot be read.
        """
        with self._lock:
            version = self._read_version()
            if self._key is None or version != self._version:
                self._key, self._version = _load_key(self.options), version
            return self._key

    def _read_version(self) -> tuple[int, ...]:
        if self.options.format == "openpgp":
            return ()
        with _key_file_errors(self.options.key_file):
            return get_file_version(Path(self.options.key_file).stat())


@contextmanager
def _key_file_errors(file: str) -> Iterator[None]:
    """Convert an OSError or ValueError of the block into a SigningFailedError that names the key file."""
    name = f"{file}, the file of the setting `signing.key_file`,"
    try:
        yield
    except OSError as error:
        raise SigningFailedError(f"{name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SigningFailedError(f"{name} {error}") from error


def _load_key(options: SigningOptions) -> SigningKey:
    if options.format == "openpgp":
        return _GpgKey(options)
    with _key_file_errors(options.key_file):
        data = Path(options.key_file).read_bytes()
        key_file = parse_ssh_key_file(data)
        if key_file.is_private and not key_file.is_encrypted and key_file.is_deterministic:
            with suppress(ImportError):
                return _InProcessSshKey(key_file, load_raw_signer(data))
    return _SshKeygenKey(key_file, options)


class _InProcessSshKey:
    """An Ed25519 or RSA key that signs in this process."""

    is_deterministic = True

    def __init__(self, key_file: SshKeyFile, sign: RawSigner) -> None:
        self._public_key = key_file.public_key
        self._sign = sign
        self.description = key_file.key_type
        self.allowed_signers = key_file.allowed_signers_line

    def sign(self, payload: bytes) -> bytes:
        """Return the armored signature of a payload."""
        return create_ssh_signature(payload, self._public_key, self._sign)


class _ProcessKey:
    """A key that signs with one process per signature.

    The object stores signatures. Without this, a pass would write another commit for the same content when it tries
    again, because signatures of some keys differ for equal data.
    """

    def __init__(self, command: Sequence[str], options: SigningOptions) -> None:
        self._command = command
        self._options = options
        self._signatures: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def sign(self, payload: bytes) -> bytes:
        """Return the armored signature of a payload."""
        digest = sha256(payload).digest()
        with self._lock:
            if digest not in self._signatures:
                self._signatures[digest] = _run_signing_program(self._command, payload, self._options)
                if len(self._signatures) > _MAX_CACHED_SIGNATURES:
                    self._signatures.popitem(last=False)
            return self._signatures[digest]


class _SshKeygenKey(_ProcessKey):
    """A key that only `ssh-keygen` can use: a hardware key, or a key with a passphrase whose agent has the key."""

    def __init__(self, key_file: SshKeyFile, options: SigningOptions) -> None:
        super().__init__(["ssh-keygen", "-q", "-Y", "sign", "-n", SSH_NAMESPACE, "-f", options.key_file], options)
        self.is_deterministic = key_file.is_deterministic
        self.description = key_file.key_type
        self.allowed_signers = key_file.allowed_signers_line


class _GpgKey(_ProcessKey):
    """An OpenPGP key. gpg writes the time into a signature, so that each signature differs."""

    is_deterministic = False
    description = "openpgp"
    allowed_signers = ""

    def __init__(self, options: SigningOptions) -> None:
        super().__init__(
            ["gpg", "--batch", "--no-tty", "--quiet", "--detach-sign", "--armor", "--local-user", options.key_id],
            options,
        )


def _run_signing_program(command: Sequence[str], payload: bytes, options: SigningOptions) -> bytes:
    # Report progress, because the signatures of a large batch take minutes.
    progress.update(command[0])
    environment = {name: value for name in _INHERITED_VARIABLES if (value := os.environ.get(name))}
    environment |= {"LC_ALL": "C", **({"GNUPGHOME": options.gnupg_home} if options.gnupg_home else {})}
    try:
        # Start the program in its own session, so that it cannot ask for a passphrase on a terminal.
        process = subprocess.run(
            command, input=payload, capture_output=True, env=environment, timeout=options.timeout_seconds,
            check=False, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise SigningFailedError(f"the program {command[0]} cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise SigningFailedError(f"{command[0]} took longer than {options.timeout_seconds:g} seconds") from error
    if process.returncode != 0 or b"-----BEGIN" not in process.stdout:
        lines = redact(process.stderr.decode(errors="replace")).split("\n")
        reason = "; ".join(line.strip() for line in lines if line.strip()) or "no reason given"
        raise SigningFailedError(f"{command[0]} could not sign: {reason}")
    return process.stdout
