"""Settings for the signatures of commits and tags."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import field_validator, model_validator

from reconciler.settings.declaration import SettingList, SettingsGroup, declare


class SigningSettings(SettingsGroup):
    """Settings for the signatures of the commits and tags that the reconciler creates."""

    format: Literal["", "ssh", "openpgp"] = declare(
        "",
        "The format of the signatures. `ssh`: SSH signatures with the key in `key_file`. `openpgp`: signatures of gpg "
        "with the key `key_id`. Empty means that nothing is signed.",
    )
    key_file: str = declare(
        "",
        "The SSH key for the format `ssh`: a private key in the format of OpenSSH, or the public key of a key in an "
        "SSH agent. An Ed25519 key without a passphrase is recommended. The service reads the file again after a "
        "change.",
    )
    key_id: str = declare(
        "", "The key for the format `openpgp`: the fingerprint or the mail address of a key in `gnupg_home`."
    )
    gnupg_home: str = declare(
        "",
        "The folder with the keys of gpg. Empty means the environment variable GNUPGHOME, or ~/.gnupg.",
    )
    sign: SettingList[Literal["commits", "tags"]] = declare(
        ("commits", "tags"),
        "The objects that are signed. `commits`: all commits of the reconciler, including those of `approve` and "
        "`reject`. `tags`: the tags of published revisions.",
    )

    verify_inputs: Literal["off", "warn", "require"] = declare(
        "off",
        "Whether the head of the config branch and the commits or tags of upstreams must have a signature by "
        "an allowed signer. `warn`: a commit without a valid signature is used and reported. `require`: such "
        "a commit is reported, and the last verified commit stays in use. A config in a plain folder is not "
        "checked.",
    )
    allowed_signers_file: str = declare(
        "",
        "The file with the SSH keys whose signatures are valid, in the format of the Git setting "
        "gpg.ssh.allowedSignersFile. If `gnupg_home` is set, the OpenPGP keys in that folder are also valid. The "
        "service reads both again after a change.",
    )

    @field_validator("verify_inputs", mode="before")
    @classmethod
    def _read_off(cls, value: Any) -> Any:
        # Accept false, because YAML 1.1 parsers read the word `off` as a boolean.
        return "off" if value is False else value

    @field_validator("key_id")
    @classmethod
    def _check_key_id(cls, value: str) -> str:
        if value and not re.fullmatch(r"[A-Za-z0-9<][^\s\0]*", value):
            raise ValueError("must be the fingerprint or the mail address of a key")
        return value

    @model_validator(mode="after")
    def _check_key(self) -> SigningSettings:
        if self.format and not self.sign:
            raise ValueError("must contain commits or tags in `sign`, because `format` is set")
        required = {"ssh": "key_file", "openpgp": "key_id"}
        for signature_format, name in required.items():
            has_value, is_required = bool(getattr(self, name)), self.format == signature_format
            if is_required and not has_value:
                raise ValueError(f'must contain `{name}`, because `format` is "{signature_format}"')
            if has_value and not is_required:
                raise ValueError(f"must contain `format: {signature_format}`, because `{name}` is set")
        if self.verify_inputs != "off" and not (self.allowed_signers_file or self.gnupg_home):
            raise ValueError(
                f"must contain `allowed_signers_file` or `gnupg_home`, because `verify_inputs` is {self.verify_inputs}"
            )
        if self.allowed_signers_file and self.verify_inputs == "off":
            raise ValueError(
                "must contain `verify_inputs: warn` or `verify_inputs: require`, because `allowed_signers_file` is set"
            )
        return self
