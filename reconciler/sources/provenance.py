"""Provenance files of charts (`.prov`): a text with digests of archives, which is signed with OpenPGP.

The program gpgv verifies the signature. Only its output is read, because a file can contain text that is not signed.
"""

from __future__ import annotations

import base64
import binascii
import re

from reconciler.krm.yaml import YamlError
from reconciler.krm.yaml.events import YamlEventReader
from reconciler.sources.cosign import create_invalid_error
from reconciler.sources.verifier_program import VerifierProgram

MAX_PROVENANCE_BYTES = 1024 * 1024
_BEGIN_KEY, _END_KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
_SEPARATOR = re.compile(r"^\.\.\.[ \t]*$", re.MULTILINE)
_MAX_ERROR_CHARACTERS = 300


def read_keyring(content: bytes, name: str) -> bytes:
    """Return a keyring in the binary format of gpgv. The content is a binary keyring, or keys with ASCII armor.

    Raises:
        SourceError: `SignatureInvalid` if a key with ASCII armor is not valid.
    """
    if not content.lstrip().startswith(_BEGIN_KEY.encode()):
        return content
    blocks = content.decode("ascii", "replace").split(_BEGIN_KEY)[1:]
    try:
        return b"".join(_decode_block(block.partition(_END_KEY)[0].splitlines()) for block in blocks)
    except (binascii.Error, ValueError):
        raise create_invalid_error(f"{name} is not an OpenPGP public key") from None


def _decode_block(lines: list[str]) -> bytes:
    """Return the content of ASCII armor: the lines after the first empty line, without the checksum (RFC 4880)."""
    body = [line.strip() for line in lines[1:]]
    body = body[body.index("") + 1 :] if "" in body else body
    return base64.b64decode("".join(line for line in body if not line.startswith("=")), validate=True)


class ProvenanceVerifier:
    """Verifies provenance files with the program gpgv, which receives only files, and has no network access."""

    def __init__(self, program: VerifierProgram) -> None:
        self._program = program

    def read_digests(self, provenance: bytes, keyring: bytes) -> dict[str, str]:
        """Return a mapping from file names to the signed digests in a provenance file.

        Raises:
            SourceError: `SignatureInvalid` if no key of the keyring has signed the file. `VerifierUnavailable` if gpgv
                cannot be used.
        """
        arguments = ("--weak-digest", "SHA1", "--keyring", "./keyring.gpg", "--output", "-", "chart.prov")
        result = self._program.run(arguments, {"keyring.gpg": keyring, "chart.prov": provenance})
        if result.exit_code != 0:
            reason = " ".join(result.stderr.split())[-_MAX_ERROR_CHARACTERS:]
            raise create_invalid_error(f"gpgv does not accept the provenance file: {reason}")
        return _parse_digests(result.output.decode("utf-8", "replace"))


def _parse_digests(text: str) -> dict[str, str]:
    """Return the digests by file name, from the field `files` in the second YAML document of the signed text."""
    digests: dict[str, str] = {}
    match = _SEPARATOR.search(text)
    try:
        reader = YamlEventReader(text[match.end() :] if match else "")
        for key in reader.read_mapping():
            if key == "files":
                for name in reader.read_mapping():
                    digests[name] = reader.read_text()
    except YamlError as error:
        raise create_invalid_error(f"the provenance file is not valid: {error}") from None
    return digests
