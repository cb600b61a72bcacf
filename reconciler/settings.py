"""Settings: read once, at the door, and handed on as plain values (design 10.31).

The only reader of the environment. Every setting stands with its default, unit and one sentence in
`config/reconciler.yaml`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from reconciler.krm.names import ref_name_fault
from reconciler.krm.yaml import Document, YamlError, parse

ENVIRONMENT_PREFIX = "RECONCILER_"
DEFAULT_FILE = "reconciler.yaml"
DRAFT_PLACEHOLDERS = ("{repository}", "{branch}", "{package}")


class SettingsError(Exception):
    """The settings cannot be used; the text names file, line, field, value and what is allowed."""


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ConfigSettings(_Group):
    """Where the configuration is: a Git URL, a bare repository or a plain folder."""

    url: str = ""
    branch: str = "main"
    directory: str = ""


class FleetSettings(_Group):
    """The repository of clusters that have no Repository object; also the default place for status."""

    url: str = ""


class StatusSettings(_Group):
    """Where the status of config objects is written; an empty url means the fleet."""

    url: str = ""
    branch: str = "reconciler/status"
    max_children: Annotated[int, Field(ge=0)] = 1_000


class GitSettings(_Group):
    """How Git is called, and as whom."""

    author: Annotated[str, StringConstraints(pattern=r"^[^<>\n]+ <[^<>\s]+>$")] = "reconciler <reconciler@localhost>"
    timeout_seconds: Annotated[int, Field(ge=1)] = 120
    max_refs_per_push: Annotated[int, Field(ge=3, le=10_000)] = 500
    max_pushes_per_minute: Annotated[int, Field(ge=0)] = 0
    allowed_urls: tuple[str, ...] = ()
    credentials_file: str = ""
    ssh_key_file: str = ""
    known_hosts_file: str = ""

    @field_validator("allowed_urls", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class DraftSettings(_Group):
    """The names of draft branches."""

    branch: str = "drafts/{repository}"

    @field_validator("branch")
    @classmethod
    def _usable(cls, value: str) -> str:
        sample = value
        for placeholder in DRAFT_PLACEHOLDERS:
            sample = sample.replace(placeholder, "x")
        if "{" in sample or "}" in sample:
            raise ValueError(f"may hold only the placeholders {', '.join(DRAFT_PLACEHOLDERS)}")
        if not any(placeholder in value for placeholder in ("{repository}", "{branch}")):
            raise ValueError("must hold {repository} or {branch}, or all clusters would share one draft")
        if why := ref_name_fault(sample):
            raise ValueError(f"must make branch names that Git accepts: {why}")
        return value


class GuardSettings(_Group):
    """What is too much to happen without somebody's word."""

    max_delete_percent: Annotated[int, Field(ge=0, le=100)] = 30


class MergeSettings(_Group):
    """Whose habits the package engine has: ours, or kpt's with its warts."""

    profile: Literal["safe", "compat"] = "safe"


class CelLimits(_Group):
    """What one expression may cost."""

    characters: Annotated[int, Field(ge=1)] = 4_096
    nesting: Annotated[int, Field(ge=1)] = 4
    steps: Annotated[int, Field(ge=1)] = 1_000_000
    bytes: Annotated[int, Field(ge=1)] = 16_777_216


class LimitSettings(_Group):
    """What one file and one expression may cost; beyond it is a finding."""

    file_bytes: Annotated[int, Field(ge=1_024)] = 4_194_304
    yaml_depth: Annotated[int, Field(ge=4, le=500)] = 100
    yaml_aliases: Annotated[int, Field(ge=0)] = 1_000
    yaml_documents: Annotated[int, Field(ge=1)] = 2_000
    cel: CelLimits = CelLimits()


class LogSettings(_Group):
    """How loud, and in which form, the service speaks."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"


class Settings(_Group):
    """Every setting; the defaults are those of a fresh installation."""

    config: ConfigSettings = ConfigSettings()
    fleet: FleetSettings = FleetSettings()
    status: StatusSettings = StatusSettings()
    cache: str = "~/.cache/reconciler"
    poll_seconds: Annotated[float, Field(gt=0)] = 60.0
    poll_jitter_percent: Annotated[int, Field(ge=0, le=100)] = 10
    max_backoff_seconds: Annotated[float, Field(gt=0)] = 900.0
    state_ref: str = "refs/reconciler/state/{repository}"
    git: GitSettings = GitSettings()
    drafts: DraftSettings = DraftSettings()
    guards: GuardSettings = GuardSettings()
    merge: MergeSettings = MergeSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()

    @field_validator("state_ref")
    @classmethod
    def _state_ref(cls, value: str) -> str:
        if "{repository}" not in value or not value.startswith("refs/"):
            raise ValueError(
                "must start with refs/ and hold {repository}, for example refs/reconciler/state/{repository}"
            )
        if why := ref_name_fault(value.replace("{repository}", "x")):
            raise ValueError(f"must make ref names that Git accepts: {why}")
        return value


def load_settings(file: str | None, environment: Mapping[str, str], folder: Path) -> Settings:
    """Read the settings: the named file, else `reconciler.yaml` in `folder`, else defaults; then the environment.

    `RECONCILER_<GROUP>__<KEY>` overrides a single setting. Raises SettingsError.
    """
    path = Path(file) if file else folder / DEFAULT_FILE
    if file and not path.is_file():
        raise SettingsError(f"{path}: the settings file must exist and be a regular file")
    document = _read(path) if path.is_file() else None
    data = document.data if document else {}
    if not isinstance(data, dict):
        raise SettingsError(f"{path}:1: the settings must be a mapping of groups, not {type(data).__name__}")
    merged = _with_environment(data, environment)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(one, path, document) for one in error.errors())) from None


def _read(path: Path) -> Document | None:
    try:
        documents = parse(path.read_bytes()).documents
    except YamlError as error:
        raise SettingsError(f"{path}:{error.line}: {error.message}") from None
    except OSError as error:
        raise SettingsError(f"{path}: the settings file must be readable: {error.strerror}") from None
    if len(documents) > 1:
        raise SettingsError(f"{path}:{documents[1].line}: the settings must be one document")
    return documents[0] if documents else None


def _with_environment(data: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    merged = {key: dict(value) if isinstance(value, dict) else value for key, value in data.items()}
    for name, text in sorted(environment.items()):
        if not name.startswith(ENVIRONMENT_PREFIX):
            continue
        *groups, key = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if (groups or [key])[0] in Settings.model_fields:
            _put(merged, groups, key, text)
    return merged


def _put(data: dict[str, Any], groups: list[str], key: str, text: str) -> None:
    for group in groups:
        inner = data.get(group)
        data[group] = data = dict(inner) if isinstance(inner, dict) else {}
    documents = parse(text).documents
    value = documents[0].data if documents else ""
    data[key] = text if isinstance(value, dict) else value


def _explain(problem: Mapping[str, Any], path: Path, document: Document | None) -> str:
    location = tuple(problem["loc"])
    field = ".".join(str(part) for part in location)
    line = document.line_of(location) if document else 0
    place = f"{path}:{line}" if line else ENVIRONMENT_PREFIX + "__".join(str(part).upper() for part in location)
    if problem["type"] == "extra_forbidden":
        return f"{place}: {field}: unknown setting; allowed here: {', '.join(_allowed(location[:-1]))}"
    why = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {field}: {why[0].lower()}{why[1:]}, not {problem['input']!r}"


def _allowed(groups: tuple[Any, ...]) -> list[str]:
    model: type[BaseModel] = Settings
    for group in groups:
        inner = model.model_fields[group].annotation
        assert isinstance(inner, type)
        assert issubclass(inner, BaseModel)
        model = inner
    return sorted(model.model_fields)
