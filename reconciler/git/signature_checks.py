"""Checks of the signatures of commits and tags with `git verify-commit` and `git verify-tag`."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Literal

from reconciler.catalog.files import CommitId, ObjectId
from reconciler.git.mirror import Mirror
from reconciler.lazy_dataclasses import dataclass

# Patterns for the output of git and gpg about a signature. The first pattern that matches determines the message.
_SSH_UNKNOWN = re.compile(r'^Good "git" signature with (?P<type>\S+) key (?P<key>\S+)', re.MULTILINE)
_GPG_UNKNOWN = re.compile(r"^\[GNUPG:\] ERRSIG (?P<key>\S+)", re.MULTILINE)
_GPG_INVALID = re.compile(r"^\[GNUPG:\] (?P<status>EXPKEYSIG|EXPSIG|REVKEYSIG) (?P<key>\S+)", re.MULTILINE)
_GPG_INVALID_MESSAGES = {
    "EXPKEYSIG": "is signed by the OpenPGP key {key}, which has expired",
    "EXPSIG": "has a signature by the OpenPGP key {key}, but the signature has expired",
    "REVKEYSIG": "is signed by the OpenPGP key {key}, which is revoked",
}


@dataclass(frozen=True)
class SignatureCheck:
    """The result of the check of a signature.

    Attributes:
        problem: The reason why the signature is not valid, with the signer if the signer is known. "" if it is valid.
    """

    problem: str

    @property
    def is_valid(self) -> bool:
        """Whether an allowed signer has signed the object."""
        return not self.problem


@dataclass(frozen=True)
class AllowedSigners:
    """The keys whose signatures are valid.

    Attributes:
        file: The allowed signers file, with SSH keys. "" means that no SSH key is allowed.
        gnupg_home: The folder of gpg with the OpenPGP keys. "" means that no OpenPGP key is allowed.
    """

    file: str = ""
    gnupg_home: str = ""

    def digest(self) -> str:
        """Return a digest of the allowed keys. After a change of the digest, signatures must be checked again."""
        parts = [_read(Path(self.file)) if self.file else b""]
        if self.gnupg_home:
            parts += [_read(Path(self.gnupg_home) / name) for name in ("pubring.kbx", "pubring.gpg")]
        return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        return f"unreadable: {error.strerror}".encode()


def check_signature(mirror: Mirror, object_id: ObjectId, commit: CommitId, signers: AllowedSigners) -> SignatureCheck:
    """Check the signature of a commit, or of an annotated tag and of its commit. One valid signature is sufficient.

    Args:
        object_id: The ID of the annotated tag, or of the commit.
        commit: The commit that the tag points to.

    Raises:
        GitError: Git cannot read the object.
    """
    if signers.file and not Path(signers.file).is_file():
        return SignatureCheck(f"cannot be checked, because {signers.file} cannot be read")
    objects: list[tuple[Literal["verify-tag", "verify-commit"], str]] = [("verify-commit", commit)]
    if str(object_id) != str(commit):
        objects.insert(0, ("verify-tag", object_id))
    problems = []
    settings = _build_settings(signers)
    for command, name in objects:
        output = mirror.verify_signature(command, name, settings)
        if output is None:
            return SignatureCheck("")
        problems.append(_describe_problem(output))
    # If only the tag or only the commit is signed, report the problem with this signature. Do not report the missing
    # signature of the other object.
    return SignatureCheck(next((problem for problem in problems if problem != _UNSIGNED), _UNSIGNED))


def _build_settings(signers: AllowedSigners) -> tuple[tuple[str, str], ...]:
    # If the settings name no folder of gpg, git must not use the keys of the user.
    gpg = () if signers.gnupg_home else (("gpg.program", "false"),)
    return (("gpg.ssh.allowedSignersFile", str(Path(signers.file or "/dev/null").absolute())), *gpg)


_UNSIGNED = "has no signature"


def _describe_problem(output: str) -> str:
    if match := _SSH_UNKNOWN.search(output):
        return f"is signed by the {match['type']} key {match['key']}, which is not an allowed signer"
    if match := _GPG_UNKNOWN.search(output):
        return f"is signed by the OpenPGP key {match['key']}, which is not in the keyring"
    if match := _GPG_INVALID.search(output):
        return _GPG_INVALID_MESSAGES[match["status"]].format(key=match["key"])
    if not output.strip() or "no signature found" in output:
        return _UNSIGNED
    return "has an invalid signature"
