"""SSH signatures of Git objects, in the format SSHSIG of OpenSSH.

The signatures equal those of `ssh-keygen -Y sign -n git`. Ed25519 and RSA keys without a passphrase sign in this
process. This module does not start processes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from reconciler.lazy_dataclasses import dataclass

SSH_NAMESPACE = "git"
_MAGIC = b"SSHSIG"
_HASH = b"sha512"
_KEY_MAGIC = b"openssh-key-v1\0"
_KEY_BEGIN, _KEY_END = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
_ED25519, _RSA = "ssh-ed25519", "ssh-rsa"
_LINE_LENGTH = 70

RawSigner = Callable[[bytes], bytes]
"""Returns the signature of data in the format of the SSH protocol: the algorithm and the signature itself."""


@dataclass(frozen=True)
class SshKeyFile:
    """The public part of an SSH key file.

    Attributes:
        public_key: The public key in the format of the SSH protocol.
        is_private: Whether the file contains the private key. Otherwise, an SSH agent has the private key.
        is_encrypted: Whether the private key is protected with a passphrase.
    """

    public_key: bytes
    is_private: bool
    is_encrypted: bool

    @property
    def key_type(self) -> str:
        """The type of the key, such as `ssh-ed25519`."""
        return _read_string(self.public_key, 0)[0].decode("ascii", "replace")

    @property
    def is_deterministic(self) -> bool:
        """Whether equal data always has equal signatures."""
        return self.key_type in (_ED25519, _RSA)

    @property
    def allowed_signers_line(self) -> str:
        """The line of an allowed signers file that accepts signatures by this key from any principal."""
        key = base64.b64encode(self.public_key).decode()
        return f'* namespaces="{SSH_NAMESPACE}" {self.key_type} {key}\n'


def parse_ssh_key_file(data: bytes) -> SshKeyFile:
    """Return the public part of a private key file in the format of OpenSSH, or of a public key file.

    Raises:
        ValueError: The file has a different format. The message does not contain content of the file.
    """
    text = data.decode("ascii", "replace").strip()
    if text.startswith("-----BEGIN") and not text.startswith(_KEY_BEGIN):
        raise ValueError("must be in the format of OpenSSH; convert the file with `ssh-keygen -p -f FILE`")
    try:
        return _parse_private_key(text) if text.startswith(_KEY_BEGIN) else _parse_public_key(text)
    except (ValueError, IndexError):
        raise ValueError("must be an SSH private key in the format of OpenSSH, or an SSH public key") from None


def _parse_public_key(text: str) -> SshKeyFile:
    name, encoded = text.split()[:2]
    key = SshKeyFile(base64.b64decode(encoded, validate=True), is_private=False, is_encrypted=False)
    if key.key_type != name:
        raise ValueError(name)
    return key


def _parse_private_key(text: str) -> SshKeyFile:
    body = text.removeprefix(_KEY_BEGIN).partition(_KEY_END)[0]
    data = base64.b64decode("".join(body.split()), validate=True)
    if not data.startswith(_KEY_MAGIC):
        raise ValueError("not a private key")
    cipher, position = _read_string(data, len(_KEY_MAGIC))
    _, position = _read_string(data, position)
    _, position = _read_string(data, position)
    public_key, _ = _read_string(data, position + 4)
    return SshKeyFile(public_key, is_private=True, is_encrypted=cipher != b"none")


def load_raw_signer(data: bytes) -> RawSigner:
    """Return a function that signs with an unencrypted Ed25519 or RSA private key.

    Raises:
        ImportError: The library `cryptography` is not installed.
        ValueError: The key is damaged, or has a different type.
    """
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

    key = serialization.load_ssh_private_key(data, password=None)
    match key:
        case ed25519.Ed25519PrivateKey():
            return lambda payload: _encode(_ED25519.encode(), key.sign(payload))
        case rsa.RSAPrivateKey():
            scheme, digest = padding.PKCS1v15(), hashes.SHA512()
            return lambda payload: _encode(b"rsa-sha2-512", key.sign(payload, scheme, digest))
        case _:
            raise ValueError("must be an Ed25519 or RSA key")


def create_ssh_signature(payload: bytes, public_key: bytes, sign: RawSigner) -> bytes:
    """Return the armored signature of `payload`, as `ssh-keygen -Y sign -n git` prints it."""
    namespace = SSH_NAMESPACE.encode()
    signed_data = _MAGIC + _encode(namespace, b"", _HASH, hashlib.sha512(payload).digest())
    blob = _MAGIC + (1).to_bytes(4, "big") + _encode(public_key, namespace, b"", _HASH, sign(signed_data))
    encoded = base64.b64encode(blob).decode()
    lines = "\n".join(encoded[start : start + _LINE_LENGTH] for start in range(0, len(encoded), _LINE_LENGTH))
    return f"-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n".encode()


def _encode(*strings: bytes) -> bytes:
    return b"".join(len(string).to_bytes(4, "big") + string for string in strings)


def _read_string(data: bytes, position: int) -> tuple[bytes, int]:
    """Return the string at `position` and the position after the string."""
    start = position + 4
    end = start + int.from_bytes(data[position:start], "big")
    if max(start, end) > len(data):
        raise IndexError("the data is too short")
    return data[start:end], end
