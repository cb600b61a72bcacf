"""The check of the signing key in `reconciler doctor`: it signs a commit in a temporary repository."""

from __future__ import annotations

import tempfile
from pathlib import Path

from reconciler.catalog.files import ObjectId
from reconciler.git.errors import SigningFailedError
from reconciler.git.mirror import Mirror, MirrorSigning
from reconciler.git.options import GitOptions
from reconciler.git.signature_checks import AllowedSigners, check_signature
from reconciler.git.signing import Signer, SigningOptions
from reconciler.lazy_dataclasses import replace
from reconciler.output.remote_checks import Check, SigningCheck


def check_signing_key(options: SigningOptions, signers: AllowedSigners) -> SigningCheck:
    """Check whether the key can be read and can sign, and whether the allowed signers contain the key.

    Args:
        signers: The keys whose signatures of inputs are valid. If there are none, the check
            that they contain the signing key is skipped.
    """
    # Sign a commit even if the key is only for tags, because Git creates and checks both signatures in the same way.
    signer = Signer(replace(options, kinds=frozenset({"commits"})))
    name, key_type, is_deterministic = options.key_file or options.key_id, "", None
    trust = Check(status="notRequired")
    with tempfile.TemporaryDirectory() as folder:
        # Nothing is fetched from or pushed to this address.
        mirror = Mirror.open(
            Path(folder) / "cache", f"{folder}/remote.git",
            GitOptions(timeout_seconds=options.timeout_seconds, gnupg_home=options.gnupg_home),
            signing=MirrorSigning(signer),
        )  # fmt: skip
        try:
            key = signer.load_key()
            key_type, is_deterministic = key.description, key.is_deterministic
            commit = mirror.write_root_commit()
        except SigningFailedError as error:
            check = Check(status="failed", message=error.message)
        else:
            check = Check(status="ok")
            if signers.file or signers.gnupg_home:
                problem = check_signature(mirror, ObjectId(commit), commit, signers).problem
                trust = Check(status="failed", message=f"a commit with this key {problem}") if problem else check
    return SigningCheck(key=name, key_type=key_type, is_deterministic=is_deterministic, sign=check, trust=trust)
