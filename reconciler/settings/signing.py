"""Settings for the signatures of commits and tags."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import field_validator, model_validator

from reconciler.settings.declaration import SettingsGroup, declare


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
    sign: tuple[Literal["commits", "tags"], ...] = declare(
        ("commits", "tags"),
        "The objects that are signed. `commits`: all commits of the reconciler, including those of `approve` and "
        "`reject`. `tags`: the tags of published revisions.",
    )

    @field_validator("sign", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("key_id")
    @classmethod
    def _check_key_id(cls, value: str) -> str:
        if value and not re.fullmatch(r"[A-Za-z0-9<][^\s\0]*", value):
            raise ValueError("must be the fingerprint or the mail address of a key")
        return value

    @model_validator(mode="after")
    def _check_key(self) -> SigningSettings:
        required = {"ssh": "key_file", "openpgp": "key_id"}
        for signature_format, name in required.items():
            has_value, is_required = bool(getattr(self, name)), self.format == signature_format
            if is_required and not has_value:
                raise ValueError(f"must contain `{name}`, because `format` is {signature_format}")
            if has_value and not is_required:
                raise ValueError(f"must have the `format` {signature_format}, because `{name}` is set")
        return self
