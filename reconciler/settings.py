"""The settings of the reconciler: models, the loader for file and environment, validation errors and JSON Schema.

Only this module reads environment variables as settings. `config/reconciler.yaml` lists every setting with its default,
its unit and a description. A test compares this file with the models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from reconciler.forge.port import ACCEPT_CONFLICTS
from reconciler.krm import yaml
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.json_pointer import PointerError, parse_pointer
from reconciler.krm.names import validate_dns_subdomain, validate_ref_name
from reconciler.lazy_dataclasses import dataclass
from reconciler.planning.model.shard import parse_shard
from reconciler.redaction import MASK, has_credentials, redact_url, redact_urls
from reconciler.server.address import split_address

if TYPE_CHECKING:
    from reconciler.krm.yaml import Document

ENVIRONMENT_PREFIX = "RECONCILER_"
DEFAULT_FILE = "reconciler.yaml"
DRAFT_PLACEHOLDERS = ("{repository}", "{branch}", "{package}")
# Read these variables, because users of kpt already set them.
_KPT_VARIABLES = {"KRM_FN_RUNTIME": ("functions", "engine"), "KPT_IMAGE_PREFIX": ("functions", "image_prefix")}
STATE_PLACEHOLDER = "{repository}"
# Remove credentials from the values of these fields in messages, because the values are URLs.
_URL_FIELDS = frozenset({"url", "allowed_urls", "api", "dask", "listen"})
_SECRET_NAME = re.compile(r"token|secret|passw|credential|key\Z", re.IGNORECASE)
# Use the type names of YAML in messages instead of the type names of Python.
_TYPE_MESSAGES = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
}


class SettingsError(ExpectedError):
    """The settings are invalid. The message contains the file, line, setting, value and allowed values."""


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _check_branch_name(value: str) -> str:
    if problem := validate_ref_name(value):
        raise ValueError(f"must be a branch name that Git accepts: {problem}")
    return value


BranchName = Annotated[str, AfterValidator(_check_branch_name)]


def _check_no_credentials(value: str) -> str:
    if has_credentials(value):
        raise ValueError(
            "must not contain a user name, password or token (CredentialInUrl): put them into the file that"
            " `git.credentials_file` names"
        )
    return value


RepositoryUrl = Annotated[str, AfterValidator(_check_no_credentials)]


class ConfigSettings(_Group):
    """Location of the config: a Git URL, the path of a bare repository, or a plain folder."""

    url: RepositoryUrl = ""
    branch: BranchName = "main"
    directory: str = ""


class FleetSettings(_Group):
    """Repository for all clusters that have no Repository object. It is also the default repository for the status."""

    url: RepositoryUrl = ""


class StatusSettings(_Group):
    """Repository and branch for the status of config objects. If `url` is empty, the fleet repository is used."""

    url: RepositoryUrl = ""
    branch: BranchName = "reconciler/status"
    max_children: Annotated[int, Field(ge=0)] = 1_000


class RemoteSettings(_Group):
    """Limits for the remotes on one host or below a path on it. An omitted limit is taken from the group `git`."""

    url: str
    max_refs_per_push: Annotated[int, Field(ge=3, le=10_000)] | None = None
    max_pushes_per_minute: Annotated[int, Field(ge=0)] | None = None

    @field_validator("url")
    @classmethod
    def _check_location(cls, value: str) -> str:
        location = re.sub(r"\A[A-Za-z][A-Za-z0-9+.-]*://", "", value)
        if not location.strip("/") or not re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]*)(/[^\s:@]*)?", location):
            raise ValueError("must be a host, or a host and a path or glob, for example github.com/acme/*")
        return value

    @model_validator(mode="after")
    def _check_limits(self) -> RemoteSettings:
        if self.max_refs_per_push is None and self.max_pushes_per_minute is None:
            raise ValueError("must contain a limit: `max_refs_per_push` or `max_pushes_per_minute`")
        return self


class GitSettings(_Group):
    """Author of commits, limits, credentials and allowed URLs for Git operations."""

    author: str = "reconciler <reconciler@localhost>"
    timeout_seconds: Annotated[int, Field(ge=1)] = 120
    max_refs_per_push: Annotated[int, Field(ge=3, le=10_000)] = 500
    max_pushes_per_minute: Annotated[int, Field(ge=0)] = 0
    remotes: tuple[RemoteSettings, ...] = ()
    max_fetches: Annotated[int, Field(ge=1, le=256)] = 8
    max_pushes: Annotated[int, Field(ge=1, le=256)] = 8
    patience_seconds: Annotated[float, Field(gt=0)] = 10.0
    allowed_urls: tuple[RepositoryUrl, ...] = ()
    credentials_file: str = ""
    ssh_key_file: str = ""
    known_hosts_file: str = ""
    revision_tags: Literal["used", "all", "none"] = "used"

    @field_validator("author")
    @classmethod
    def _check_author(cls, value: str) -> str:
        if not re.fullmatch(r"[^<>\n]+ <[^<>\s]+>", value):
            raise ValueError('must be a name and an address, for example "reconciler <reconciler@localhost>"')
        return value

    @field_validator("allowed_urls", "remotes", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class DraftSettings(_Group):
    """Names of draft branches."""

    branch: str = "drafts/{repository}"
    removals_branch: str = "removals/{repository}"
    config_branch: str = "drafts/config"

    @field_validator("config_branch")
    @classmethod
    def _check_config_branch(cls, value: str) -> str:
        if not value or "{" in value or "}" in value:
            raise ValueError("must be the name of one branch, without placeholders")
        if problem := validate_ref_name(value):
            raise ValueError(f"must be a branch name that Git accepts: {problem}")
        return value

    @model_validator(mode="after")
    def _check_templates_differ(self) -> DraftSettings:
        draft, removal = (
            template.format(repository="x", branch="y", package="z") for template in (self.branch, self.removals_branch)
        )
        if draft == removal or draft.startswith(f"{removal}/") or removal.startswith(f"{draft}/"):
            raise ValueError(
                "`branch` and `removals_branch` must not be equal, and neither may be a folder that contains the other"
            )
        return self

    @field_validator("branch", "removals_branch")
    @classmethod
    def _check_template(cls, value: str) -> str:
        sample = value
        for placeholder in DRAFT_PLACEHOLDERS:
            sample = sample.replace(placeholder, "x")
        if "{" in sample or "}" in sample:
            raise ValueError(f"must not contain placeholders other than {', '.join(DRAFT_PLACEHOLDERS)}")
        if not any(placeholder in value for placeholder in ("{repository}", "{branch}")):
            raise ValueError("must contain {repository} or {branch}, otherwise all clusters would share one draft")
        if problem := validate_ref_name(sample):
            raise ValueError(f"must produce branch names that Git accepts: {problem}")
        return value


class ApprovalSettings(_Group):
    """Settings for the approval of drafts by an annotation instead of a person."""

    by_annotation: bool = False


class ReviewSettings(_Group):
    """Settings for review actions: propose, approve and reject a draft."""

    clock: Literal["real", "commits"] = "real"


class GuardSettings(_Group):
    """Limits for deletions. If a pass would delete more, a person must acknowledge the deletion."""

    max_delete_percent: Annotated[int, Field(ge=0, le=100)] = 30


class MergeSettings(_Group):
    """Merge behavior when a package is updated to another upstream revision, and the handling of conflicts."""

    profile: Literal["safe", "compat"] = "safe"
    conflict_policy: Literal["", "upstream", "local", "block"] = ""
    deviations: dict[str, bool] = {}
    list_keys: dict[str, dict[str, list[str] | None]] = {}

    @field_validator("deviations")
    @classmethod
    def _check_deviations(cls, value: dict[str, bool]) -> dict[str, bool]:
        # Import here, so that commands that do not merge packages do not load this code.
        from reconciler.packages.update.options import DEVIATIONS

        if any(number not in DEVIATIONS for number in value):
            allowed = sorted(DEVIATIONS, key=lambda number: int(number[1:]))
            raise ValueError(f"must contain only the deviations {', '.join(allowed)}")
        return value

    @field_validator("list_keys")
    @classmethod
    def _check_list_keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        from reconciler.krm.schema import read_list_key_table

        if problems := read_list_key_table(value)[1]:
            raise ValueError("; ".join(problems))
        return value


class RuleSettings(_Group):
    """Behavior of the controllers, and of the checks of rendered packages."""

    on_missing_policy: Literal["fail", "ignore"] = "fail"
    secrets: Literal["warn", "block"] = "warn"
    pod_spec_paths: dict[str, str] = {}
    strict: list[str] = []
    central_cluster: str = ""
    base_domain: str = ""
    expressions: bool = True
    plugin_outputs: list[Literal["values", "helmrelease"]] = []
    runtime_composition: bool = True
    template_mode: Literal["materialise", "report"] = "materialise"
    crd_group: str = "platform"

    @field_validator("crd_group")
    @classmethod
    def _check_group(cls, value: str) -> str:
        if problem := validate_dns_subdomain(value):
            raise ValueError(f"must be an API group: {problem}")
        return value

    @field_validator("strict")
    @classmethod
    def _check_codes(cls, value: list[str]) -> list[str]:
        # Import here, so that commands that do not run controllers do not load them.
        from reconciler.controllers.kafka_templates import codes as templates
        from reconciler.controllers.override_policies import codes as overrides

        allowed = overrides.WARNINGS | templates.WARNINGS
        if not allowed.issuperset(value):
            raise ValueError(
                f"must contain only warnings of override policies and templates: {', '.join(sorted(allowed))}"
            )
        return value

    @field_validator("pod_spec_paths")
    @classmethod
    def _check_pointers(cls, value: dict[str, str]) -> dict[str, str]:
        for kind, path in value.items():
            if not kind.rpartition("/")[2] or kind.count("/") > 1:
                raise ValueError("must have keys of the form group/Kind, for example apps.example/CloneSet")
            try:
                parse_pointer(path)
            except PointerError:
                raise ValueError("must have JSON pointers as values, for example /spec/template/spec") from None
        return value


class FunctionSettings(_Group):
    """Programs and container images that packages may run as functions, and the limits of one function call."""

    exec: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    engine: Literal["", "podman", "docker", "nerdctl"] = ""
    pull: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_prefix: str = "ghcr.io/kptdev/krm-functions-catalog"
    timeout_seconds: Annotated[int, Field(ge=1)] = 300
    memory_bytes: Annotated[int, Field(ge=16_777_216)] = 536_870_912
    output_bytes: Annotated[int, Field(ge=1_024)] = 67_108_864

    @field_validator("exec", "containers", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("exec")
    @classmethod
    def _check_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(path.startswith("/") and path == str(PurePosixPath(path)) and ".." not in path for path in value):
            raise ValueError("must be absolute paths without . and .., for example /usr/local/bin/*")
        return value

    @field_validator("containers")
    @classmethod
    def _check_references(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(reference and not re.search(r"\s", reference) for reference in value):
            raise ValueError("must be image references, for example example.com/functions/*")
        return value

    @field_validator("image_prefix")
    @classmethod
    def _check_image_prefix(cls, value: str) -> str:
        if not re.fullmatch(r"[^\s/]+(/[^\s/]+)*", value):
            raise ValueError("must be a registry and a path without a slash at the end")
        return value


class CelLimits(_Group):
    """Limits of one CEL expression."""

    characters: Annotated[int, Field(ge=1)] = 4_096
    nesting: Annotated[int, Field(ge=1)] = 4
    steps: Annotated[int, Field(ge=1)] = 1_000_000
    bytes: Annotated[int, Field(ge=1)] = 16_777_216


class FunctionLimitSettings(_Group):
    """Limits of built-in functions and starlark scripts. A function that exceeds a limit fails."""

    steps: Annotated[int, Field(ge=1_000)] = 20_000_000
    output_bytes: Annotated[int, Field(ge=1_024)] = 16_777_216
    placeholders: Annotated[int, Field(ge=1, le=1_000)] = 100
    cpu_seconds: Annotated[int, Field(ge=1)] = 10
    memory_bytes: Annotated[int, Field(ge=67_108_864)] = 536_870_912


class LimitSettings(_Group):
    """Limits of config files, packages, expressions and functions. If a limit is exceeded, a finding reports it."""

    file_bytes: Annotated[int, Field(ge=1_024)] = 4_194_304
    folder_files: Annotated[int, Field(ge=1)] = 200_000
    yaml_depth: Annotated[int, Field(ge=4, le=500)] = 100
    yaml_aliases: Annotated[int, Field(ge=0)] = 1_000
    yaml_documents: Annotated[int, Field(ge=1)] = 2_000
    cel: CelLimits = CelLimits()
    functions: FunctionLimitSettings = FunctionLimitSettings()


class ForgeHost(_Group):
    """A forge, with the URL of its API and its credentials.

    `url` is the prefix of the URLs of its repositories. The protocol that Git uses does not matter.
    """

    url: str
    kind: Literal["github", "gitlab", "gitea", "gitlab-push-options", "agit"]
    api: str = ""
    token_file: str = ""
    app_id: str = ""
    app_key_file: str = ""
    app_installation: Annotated[int, Field(ge=0)] = 0

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if not re.fullmatch(r"(https?://|file://|ssh://|/)[^\s@]+", value):
            raise ValueError("must be a URL without credentials, for example https://github.com/acme")
        return value

    @field_validator("api")
    @classmethod
    def _check_api(cls, value: str) -> str:
        # Require https, because a token must not be sent unencrypted. Allow http for a forge on this machine, because
        # such requests do not use a network.
        if value and not re.fullmatch(
            r"https://[^\s@?#]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?[^\s@?#]*", value
        ):
            raise ValueError("must be an https URL without credentials, for example https://git.example.com/api/v1")
        return value

    @model_validator(mode="after")
    def _check_credentials(self) -> ForgeHost:
        app = (self.app_id, self.app_key_file)
        if self.kind in ("gitlab-push-options", "agit"):
            if self.token_file or self.api or any(app):
                raise ValueError(
                    f"must not contain `api` or credentials, because the kind {self.kind} uses only Git pushes"
                )
            return self
        if any(app) and (self.kind != "github" or not all(app) or self.token_file):
            raise ValueError(
                "must contain `app_id` and `app_key_file` together, only on GitHub, and without `token_file`"
            )
        if not self.token_file and not any(app):
            raise ValueError("must contain `token_file`, or on GitHub `app_id` and `app_key_file`")
        if not self.api and not self.url.startswith("https://"):
            raise ValueError("must contain `api` if `url` does not start with https://")
        return self


_AUTHENTICATED = re.compile(r"(?:tls|wss)://")
_LOOPBACK = re.compile(r"[a-z]+://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d+\Z")


class RenderingSettings(_Group):
    """Parallel rendering of many packages in worker processes or on a Dask cluster."""

    workers: Annotated[int, Field(ge=0, le=256)] = 0
    dask: str = ""
    timeout_seconds: Annotated[int, Field(ge=1)] = 600

    @field_validator("dask")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^\s/]+", value):
            raise ValueError('must be the address of a scheduler, for example "tls://scheduler:8786"')
        # Require TLS, because Dask has no other authentication, and each process that reaches a scheduler can run code.
        if value and not (_AUTHENTICATED.match(value) or _LOOPBACK.match(value)):
            raise ValueError(
                'must start with tls:// or wss:// unless the scheduler is on this machine, for example "tls://scheduler:8786"'
            )
        return value


class ForgeSettings(_Group):
    """Settings for pull requests: forges, labels, checks, merge method and limits."""

    hosts: tuple[ForgeHost, ...] = ()
    draft: bool = True
    labels: tuple[str, ...] = ()
    check: bool = True
    merge: Literal["", "merge", "squash", "rebase"] = ""
    max_open: Annotated[int, Field(ge=0)] = 0
    new_per_hour: Annotated[int, Field(ge=0)] = 200
    writes_per_minute: Annotated[int, Field(ge=0)] = 60

    @field_validator("hosts", "labels", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not label.strip() or "," in label or not label.isprintable() for label in value):
            raise ValueError("must be names of labels, without commas")
        if ACCEPT_CONFLICTS in value:
            raise ValueError(f"must not contain {ACCEPT_CONFLICTS}: reviewers accept conflicts with this label")
        return value


class WebhookSettings(_Group):
    """Settings of the webhook server, to which Git hosts report changes."""

    listen: str = ""
    secret_file: str = ""
    gather_seconds: Annotated[float, Field(ge=0, le=60)] = 2.0

    @field_validator("listen")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value

    @model_validator(mode="after")
    def _check_secret_file(self) -> WebhookSettings:
        if self.listen and not self.secret_file:
            raise ValueError(
                "must contain `secret_file` if `listen` is set, because the server accepts only signed webhooks"
            )
        return self


class LogSettings(_Group):
    """Level and format of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"


class Settings(_Group):
    """All settings. The defaults are those of a new installation."""

    config: ConfigSettings = ConfigSettings()
    fleet: FleetSettings = FleetSettings()
    status: StatusSettings = StatusSettings()
    cache: str = "~/.cache/reconciler"
    poll_seconds: Annotated[float, Field(gt=0)] = 60.0
    poll_jitter_percent: Annotated[int, Field(ge=0, le=100)] = 10
    max_backoff_seconds: Annotated[float, Field(gt=0)] = 900.0
    state_ref: str = "refs/reconciler/state/{repository}"
    shard: str = "1/1"
    git: GitSettings = GitSettings()
    drafts: DraftSettings = DraftSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    review: ReviewSettings = ReviewSettings()
    guards: GuardSettings = GuardSettings()
    merge: MergeSettings = MergeSettings()
    rules: RuleSettings = RuleSettings()
    functions: FunctionSettings = FunctionSettings()
    limits: LimitSettings = LimitSettings()
    rendering: RenderingSettings = RenderingSettings()
    forge: ForgeSettings = ForgeSettings()
    webhooks: WebhookSettings = WebhookSettings()
    log: LogSettings = LogSettings()

    @field_validator("shard")
    @classmethod
    def _check_shard(cls, value: str) -> str:
        parse_shard(value)
        return value

    @field_validator("state_ref")
    @classmethod
    def _check_state_ref(cls, value: str) -> str:
        prefix = value.removesuffix(STATE_PLACEHOLDER)
        # Allow no text after the placeholder, because state refs are found by their prefix.
        if prefix == value or STATE_PLACEHOLDER in prefix or not (value.startswith("refs/") and prefix.endswith("/")):
            raise ValueError(
                "must start with refs/ and end with /{repository}, for example refs/reconciler/state/{repository}"
            )
        if problem := validate_ref_name(f"{prefix}x"):
            raise ValueError(f"must produce ref names that Git accepts: {problem}")
        return value


def load_settings(file: str | None, environment: Mapping[str, str], folder: Path) -> Settings:
    """Read the settings from a file and from environment variables.

    The file is `file`. If `file` is None, it is `reconciler.yaml` in `folder`, which may be absent. An environment
    variable `RECONCILER_<GROUP>__<KEY>` overrides a setting. KRM_FN_RUNTIME and KPT_IMAGE_PREFIX, which kpt also uses,
    apply only if the file does not set the value. A setting without a value has its default.

    Raises:
        SettingsError: The file cannot be read, or a setting is invalid.
    """
    path = Path(file) if file else folder / DEFAULT_FILE
    if file and not path.is_file():
        raise SettingsError(f"{path}: the settings file must exist and be a regular file")
    document = _read_document(path) if path.is_file() else None
    data = document.data if document else {}
    if not isinstance(data, dict):
        raise SettingsError(f"{path}:1: the settings must be a mapping of groups, not {type(data).__name__}")
    merged, overridden = _apply_environment(_remove_empty_values(data), environment)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        locations = _SettingLocations(path, document, overridden)
        raise SettingsError("\n".join(_format_error(detail, locations) for detail in error.errors())) from None


def build_schema_text() -> str:
    """Return the JSON Schema of the settings file. The file `config/schema.json` contains this text."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


def _read_document(path: Path) -> Document | None:
    try:
        documents = yaml.parse_yaml(path.read_bytes()).documents
    except yaml.YamlError as error:
        raise SettingsError(f"{path}:{error.line}: {error.message}") from None
    except OSError as error:
        raise SettingsError(f"{path}: the settings file must be readable: {error.strerror}") from None
    if len(documents) > 1:
        raise SettingsError(f"{path}:{documents[1].line}: the settings file must contain one YAML document")
    return documents[0] if documents else None


def _remove_empty_values(data: Mapping[Any, Any]) -> dict[Any, Any]:
    """Remove keys with a null value, such as a group in which all settings are commented out."""
    cleaned = {key: _remove_empty_values(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in cleaned.items() if value is not None}


def _apply_environment(
    data: dict[Any, Any], environment: Mapping[str, str]
) -> tuple[dict[Any, Any], dict[tuple[str, ...], str]]:
    """Return the settings with the values of environment variables, and the name of the variable per setting."""
    overridden: dict[tuple[str, ...], str] = {}
    for name, (group, key) in _KPT_VARIABLES.items():
        group_data = data.get(group)
        if environment.get(name) and not (isinstance(group_data, dict) and key in group_data):
            data = _set_value(data, (group, key), environment[name])
            overridden[group, key] = name
    for name, text in sorted(environment.items()):
        path = tuple(name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"))
        # Ignore other variables with this prefix, because Kubernetes adds variables such as RECONCILER_PORT to pods if
        # a Service has the name "reconciler".
        if name.startswith(ENVIRONMENT_PREFIX) and path[0] in Settings.model_fields:
            data = _set_value(data, path, _parse_variable(path, text))
            overridden[path] = name
    return data, overridden


def _set_value(data: object, path: tuple[str, ...], value: object) -> dict[Any, Any]:
    inner = dict(data) if isinstance(data, dict) else {}
    name, *remaining_path = path
    return {**inner, name: _set_value(inner.get(name), tuple(remaining_path), value) if remaining_path else value}


def _parse_variable(path: tuple[str, ...], text: str) -> object:
    """Return the value of an environment variable. For a text setting, return the text. Otherwise, parse it as YAML."""
    group = _find_group(path[:-1])
    field = group.model_fields.get(path[-1]) if group else None
    if field is None or not (field.annotation in (bool, int, float) or get_origin(field.annotation) in (tuple, dict)):
        return text
    try:
        documents = yaml.parse_yaml(text).documents
    except yaml.YamlError:
        return text
    return documents[0].data if documents else text


def _find_group(path: Iterable[Any]) -> type[BaseModel] | None:
    model: type[BaseModel] = Settings
    for name in path:
        if isinstance(name, int):
            # Skip the index of a list, because `model` already is the model of the list elements.
            continue
        field = model.model_fields.get(name)
        annotation = field.annotation if field else None
        annotation = get_args(annotation)[0] if get_origin(annotation) is tuple else annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return None
        model = annotation
    return model


@dataclass(frozen=True)
class _SettingLocations:
    """Source locations of settings: a line in the settings file, or an environment variable that overrides it."""

    path: Path
    document: Document | None
    overridden: Mapping[tuple[str, ...], str]

    def find(self, location: tuple[str | int, ...]) -> str:
        """Return the environment variable that sets a value, its group or a part of it.

        If there is no such variable, return the file and line.
        """
        for path, variable in self.overridden.items():
            if all(name == step for name, step in zip(path, map(str, location), strict=False)):
                return variable
        return f"{self.path}:{self.document.find_line(location)}" if self.document else str(self.path)


def _format_error(detail: ErrorDetails, locations: _SettingLocations) -> str:
    location = detail["loc"]
    start = f"{locations.find(location)}: {'.'.join(map(str, location))}"
    value = _redact_value(location, detail["input"])
    match detail["type"]:
        case "extra_forbidden":
            return f"{start}: unknown setting; allowed settings: {_list_settings(location[:-1])}"
        case "model_type":
            return f"{start}: must be a mapping of settings ({_list_settings(location)}), not {value!r}"
        case _:
            message = detail["msg"].removeprefix("Value error, ").replace("Input should", "must")
            return f"{start}: {_TYPE_MESSAGES.get(detail['type'], message)}, not {value!r}"


def _redact_value(location: tuple[str | int, ...], value: object) -> object:
    """Return a value for a message. Credentials in URLs and values that may be secrets are removed or masked.

    Values that may be secrets are values of unknown settings such as `token`, and texts in a list or mapping if the
    setting requires the name of a file.
    """
    if isinstance(value, str):
        is_url = any(name in _URL_FIELDS for name in location)
        return redact_url(value) if is_url else redact_urls(value)
    if isinstance(value, dict):
        return {
            key: _redact_value((*location, key), inner) if _can_show(location, key) else MASK
            for key, inner in value.items()
        }
    if isinstance(value, list):
        is_file = any(str(name).endswith("_file") for name in location)
        return [MASK if is_file else _redact_value(location, element) for element in value]
    return value


def _can_show(location: tuple[str | int, ...], key: object) -> bool:
    """Return whether a message may show the value of a key.

    In a group of settings, only values of known settings may be shown. In another mapping, a value may be shown unless
    its key is typical for a secret, such as `token`, or the setting requires the name of a file.
    """
    group = _find_group(location)
    if group:
        return key in group.model_fields
    is_file = any(str(name).endswith("_file") for name in location)
    return not (is_file or _SECRET_NAME.search(str(key)))


def _list_settings(path: Iterable[str | int]) -> str:
    group = _find_group(path)
    return ", ".join(sorted(group.model_fields)) if group else ""
