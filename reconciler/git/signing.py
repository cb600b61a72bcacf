"""Signing keys for commits and tags: SSH keys and OpenPGP keys.

Ed25519 and RSA keys without a passphrase sign in this process (module `ssh_signatures`). All other keys need one
process per signature: `ssh-keygen` or `gpg`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Literal, Protocol

from reconciler.credential_files import get_file_version
from reconciler.git.errors import InterruptedGitError, SigningFailedError
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
_INHERITED_VARIABLES = ("PATH", "HOME", "SSH_AUTH_SOCK", "SSH_SK_PROVIDER", "GNUPGHOME")
# The time between two checks of `should_stop` while a program signs. A program can wait minutes for the touch of a
# hardware key.
_STOP_CHECK_SECONDS = 0.5
ShouldStop = Callable[[], bool]
"""Returns whether the process must end soon. Keys that need one program per signature then sign nothing more."""


def never_stop() -> bool:
    """Return False: the default of `ShouldStop`, for commands that do not handle signals."""
    return False


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

    def __init__(self, options: SigningOptions, should_stop: ShouldStop = never_stop) -> None:
        self.options = options
        self._should_stop = should_stop
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
                self._key, self._version = _load_key(self.options, self._should_stop), version
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


def _load_key(options: SigningOptions, should_stop: ShouldStop) -> SigningKey:
    if options.format == "openpgp":
        return _GpgKey(options, should_stop)
    with _key_file_errors(options.key_file):
        data = Path(options.key_file).read_bytes()
        key_file = parse_ssh_key_file(data)
        if key_file.is_private and not key_file.is_encrypted and key_file.is_deterministic:
            with suppress(ImportError):
                return _InProcessSshKey(key_file, load_raw_signer(data))
    return _SshKeygenKey(key_file, options, should_stop)


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

    The object caches signatures, because some keys give a different signature for equal data each time. Without the
    cache, a repeated attempt would write a different commit for the same content.
    """

    def __init__(self, command: Sequence[str], options: SigningOptions, should_stop: ShouldStop) -> None:
        self._command = command
        self._options = options
        self._should_stop = should_stop
        self._signatures: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = Lock()

    def sign(self, payload: bytes) -> bytes:
        """Return the armored signature of a payload.

        Raises:
            InterruptedGitError: The daemon or command must end, and the payload has no signature yet.
        """
        digest = sha256(payload).digest()
        with self._lock:
            if digest not in self._signatures:
                output = _run_signing_program(self._command, payload, self._options, self._should_stop)
                self._signatures[digest] = output
                if len(self._signatures) > _MAX_CACHED_SIGNATURES:
                    self._signatures.popitem(last=False)
            return self._signatures[digest]


class _SshKeygenKey(_ProcessKey):
    """A key that only `ssh-keygen` can use: a hardware key, or a key with a passphrase whose agent has the key."""

    def __init__(self, key_file: SshKeyFile, options: SigningOptions, should_stop: ShouldStop) -> None:
        command = ["ssh-keygen", "-q", "-Y", "sign", "-n", SSH_NAMESPACE, "-f", options.key_file]
        super().__init__(command, options, should_stop)
        self.is_deterministic = key_file.is_deterministic
        self.description = key_file.key_type
        self.allowed_signers = key_file.allowed_signers_line


class _GpgKey(_ProcessKey):
    """An OpenPGP key. gpg writes the time into a signature, so that each signature differs."""

    is_deterministic = False
    description = "openpgp"
    allowed_signers = ""

    def __init__(self, options: SigningOptions, should_stop: ShouldStop) -> None:
        command = ["gpg", "--batch", "--no-tty", "--quiet", "--detach-sign", "--armor", "--local-user", options.key_id]
        super().__init__(command, options, should_stop)


def _run_signing_program(
    command: Sequence[str], payload: bytes, options: SigningOptions, should_stop: ShouldStop
) -> bytes:
    # Report progress, because the signatures of a large batch take minutes.
    progress.update(command[0])
    if should_stop():
        raise InterruptedGitError(f"{command[0]} was not started, because the process must end")
    environment = {name: value for name in _INHERITED_VARIABLES if (value := os.environ.get(name))}
    environment |= {"LC_ALL": "C", **({"GNUPGHOME": options.gnupg_home} if options.gnupg_home else {})}
    try:
        # Start the program in its own session, so that it cannot ask for a passphrase on a terminal.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise SigningFailedError(f"the program {command[0]} cannot be started: {error.strerror}") from error
    with process:
        try:
            output, error_output = _communicate(process, command[0], payload, options.timeout_seconds, should_stop)
        finally:
            if process.poll() is None:
                # Also end the programs that the signing program has started, such as the helper for hardware keys.
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0 or b"-----BEGIN" not in output:
        lines = redact(error_output.decode(errors="replace")).split("\n")
        reason = "; ".join(line.strip() for line in lines if line.strip()) or "no reason given"
        raise SigningFailedError(f"{command[0]} could not sign: {reason}")
    return output


def _communicate(
    process: subprocess.Popen[bytes], program: str, payload: bytes, timeout_seconds: float, should_stop: ShouldStop
) -> tuple[bytes, bytes]:
    """Return the output and the error output of a program that signs.

    Raises:
        SigningFailedError: The program took too long.
        InterruptedGitError: This daemon or command must end, e.g. after a signal.
    """
    end, data = time.monotonic() + timeout_seconds, payload
    while (remaining := end - time.monotonic()) > 0:
        try:
            return process.communicate(data, timeout=min(remaining, _STOP_CHECK_SECONDS))
        except subprocess.TimeoutExpired:
            # Pass no data to the next call of `communicate`, because it continues to write the payload of the first
            # call.
            data = b""
        if should_stop():
            raise InterruptedGitError(f"{program} was ended, because the process must end")
    raise SigningFailedError(f"{program} took longer than {timeout_seconds:g} seconds")
