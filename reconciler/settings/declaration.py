"""The declaration of a setting, the origins of settings, and types that several groups of settings use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from reconciler.krm.names import validate_ref_name
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.redaction import has_credentials
from reconciler.server import address

if TYPE_CHECKING:
    from reconciler.krm.yaml import Document
    from reconciler.server.console.shown_settings import SettingOrigin


class SettingsGroup(BaseModel):
    """A group of settings. Unknown settings are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def declare(default: Any, description: str, **limits: Any) -> Any:
    """Return the declaration of a setting. Files that are generated from the settings contain its description."""
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
    if value and not address.get_socket_path(value):
        address.split_address(value)
    return value


ListenAddress = Annotated[str, AfterValidator(_check_listen_address)]
"""The address on which the HTTP server listens, as host:port or as unix:PATH. It can be empty."""


def _convert_list(value: Any) -> Any:
    # A YAML file contains lists, and a strict model accepts only tuples for a field of the type tuple.
    return tuple(value) if isinstance(value, list) else value


_Element = TypeVar("_Element")
SettingList = Annotated[tuple[_Element, ...], BeforeValidator(_convert_list)]
"""A list of the settings file as an immutable tuple."""

SettingPath = tuple[str, ...]
"""A setting as its groups and its name, such as `("git", "author")`."""


@dataclass(frozen=True)
class SettingOrigins:
    """The origins of all settings that do not have their default.

    All objects are equal, so that settings with equal values and different origins are equal.

    Attributes:
        file: The settings file.
        document: The content of the settings file. None if there is no such file.
        variables: Maps each setting that an environment variable overrides to this variable.
        options: Maps each setting that a command-line option overrides to this option.
    """

    file: Path = field(default=Path(), compare=False)
    document: Document | None = field(default=None, compare=False, repr=False)
    variables: Mapping[SettingPath, str] = field(default_factory=dict, compare=False)
    options: Mapping[SettingPath, str] = field(default_factory=dict, compare=False)

    def with_options(self, options: Mapping[SettingPath, str]) -> SettingOrigins:
        """Return these origins with options of the command line."""
        return replace(self, options=options)

    def find(self, location: tuple[str | int, ...]) -> tuple[SettingOrigin, str]:
        """Return the origin of a setting that does not have its default.

        The origin is an option or an environment variable if it sets the whole setting, a part of the setting, or the
        group of the setting. Otherwise, the origin is the line in the settings file.
        """
        if option := _find_name(self.options, location):
            return "option", option
        if variable := _find_name(self.variables, location):
            return "environment", variable
        return "file", f"{self.file}:{self.document.find_line(location)}" if self.document else str(self.file)


def _find_name(names: Mapping[SettingPath, str], location: Iterable[str | int]) -> str | None:
    steps = [*map(str, location)]
    matching = (name for path, name in names.items() if all(map(str.__eq__, path, steps)))
    return next(matching, None)
