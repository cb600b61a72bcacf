"""The declaration of a setting, and types that several groups of settings use."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from reconciler.krm.names import validate_ref_name
from reconciler.redaction import has_credentials
from reconciler.server import address


class SettingsGroup(BaseModel):
    """A group of settings. Unknown settings are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def declare(default: Any, description: str, **limits: Any) -> Any:
    """Return the declaration of a setting with its default and limits. All generated files contain the description."""
    return Field(default, description=description, **limits)


def _check_branch_name(value: str) -> str:
    if problem := validate_ref_name(value):
        raise ValueError(f"must be a branch name that Git accepts: {problem}")
    return value


BranchName = Annotated[str, AfterValidator(_check_branch_name)]


def _check_no_credentials(value: str) -> str:
    if has_credentials(value):
        raise ValueError(
            "must not contain a user name, password or token (removed here): put them into a file, and name the file in"
            " the settings, for example in `git.credentials` (CredentialInUrl)"
        )
    return value


UrlWithoutCredentials = Annotated[str, AfterValidator(_check_no_credentials)]


def _check_listen_address(value: str) -> str:
    if value:
        address.split_address(value)
    return value


ListenAddress = Annotated[str, AfterValidator(_check_listen_address)]
"""The address on which the HTTP server listens, as host:port. It can be empty."""


def _convert_list(value: Any) -> Any:
    # A YAML file contains lists, and a strict model accepts only tuples for a field of the type tuple.
    return tuple(value) if isinstance(value, list) else value


_Element = TypeVar("_Element")
SettingList = Annotated[tuple[_Element, ...], BeforeValidator(_convert_list)]
"""A list of the settings file as an immutable tuple."""
