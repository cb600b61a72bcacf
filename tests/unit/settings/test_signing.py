"""Checks of the settings group `signing`."""

import pytest
from pydantic import ValidationError

from reconciler.settings.signing import SigningSettings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"format": "ssh"}, 'must contain `key_file`, because `format` is "ss', id="ssh-without-a-key"),
        pytest.param({"format": "openpgp"}, 'must contain `key_id`, because `format` is "openpgp', id="openpgp-alone"),
        pytest.param({"key_file": "k"}, "must contain `format: ssh`, because `key_file` is set", id="key-alone"),
        pytest.param(
            {"format": "ssh", "key_file": "k", "key_id": "1"},
            "must contain `format: openpgp`, because `key_id` is set",
            id="both-keys",
        ),
        pytest.param({"format": "x509"}, "Input should be '', 'ssh' or 'openpgp'", id="unknown-format"),
        pytest.param(
            {"format": "openpgp", "key_id": "--output=x"}, "must be the fingerprint or the mail address", id="option"
        ),
        pytest.param(
            {"verify_inputs": "require"},
            "must contain `allowed_signers_file` or `gnupg_home`, because `verify_inputs` is require",
            id="verification-without-keys",
        ),
        pytest.param(
            {"allowed_signers_file": "f"},
            "must contain `verify_inputs: warn` or `verify_inputs: require`, because `allowed_signers_file` is set",
            id="keys-without-verification",
        ),
        pytest.param(
            {"format": "ssh", "key_file": "k", "sign": []}, "must contain commits or tags in `sign`", id="sign-nothing"
        ),
        pytest.param({"sign": ["pushes"]}, "Input should be 'commits' or 'tags'", id="unknown-object"),
    ],
)
def test_invalid_settings_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SigningSettings.model_validate(values)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="none"),
        pytest.param({"verify_inputs": False}, id="off-of-yaml-1.1"),
        pytest.param({"verify_inputs": "warn", "allowed_signers_file": "f"}, id="verification-with-ssh-keys"),
        pytest.param({"verify_inputs": "require", "gnupg_home": "/keys"}, id="verification-with-openpgp-keys"),
        pytest.param({"format": "ssh", "key_file": "key", "sign": ["commits"]}, id="ssh"),
        pytest.param({"format": "openpgp", "key_id": "robot@example.com", "gnupg_home": "/keys"}, id="openpgp"),
    ],
)
def test_valid_settings_are_accepted(values: dict[str, object]) -> None:
    assert SigningSettings.model_validate(values).format == values.get("format", "")
