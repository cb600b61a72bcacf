"""Settings: read once, at the door, and handed on as plain values (design 10.31).

The only reader of the environment. Every setting stands with its default, unit and one sentence in
`config/reconciler.yaml`; a test compares the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from reconciler.forge.request import ACCEPT_CONFLICTS
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.names import dns_subdomain_fault, ref_name_fault
from reconciler.krm.pointer import PointerError, parse_pointer
from reconciler.krm.yaml import Document, YamlError, parse
from reconciler.planning.shard import read_shard
from reconciler.redaction import MASK, has_credentials, redact_url, redact_urls
from reconciler.web.address import split_address

ENVIRONMENT_PREFIX = "RECONCILER_"
DEFAULT_FILE = "reconciler.yaml"
DRAFT_PLACEHOLDERS = ("{repository}", "{branch}", "{package}")
# what users of kpt have in their environment already
_OF_KPT = {"KRM_FN_RUNTIME": ("functions", "engine"), "KPT_IMAGE_PREFIX": ("functions", "image_prefix")}
STATE_PLACEHOLDER = "{repository}"
# Fields whose values are URLs: a message shows them without anything that may be a credential.
_URL_FIELDS = frozenset({"url", "allowed_urls", "api", "dask", "listen"})
_SECRET_NAME = re.compile(r"token|secret|passw|credential|key\Z", re.IGNORECASE)
# YAML's words in place of Python's
_PLAIN = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
}


class SettingsError(ExpectedError):
    """The settings cannot be used; the text names file, line, field, value and what is allowed."""


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _branch(value: str) -> str:
    if why := ref_name_fault(value):
        raise ValueError(f"must be a branch name that Git accepts: {why}")
    return value


BranchName = Annotated[str, AfterValidator(_branch)]


def _without_credentials(value: str) -> str:
    if has_credentials(value):
        raise ValueError(
            "must be written without user name, password or token (CredentialInUrl): put them into the file that"
            " git.credentials_file names"
        )
    return value


RepositoryUrl = Annotated[str, AfterValidator(_without_credentials)]


class ConfigSettings(_Group):
    """Where the configuration is: a Git URL, a bare repository or a plain folder."""

    url: RepositoryUrl = ""
    branch: BranchName = "main"
    directory: str = ""


class FleetSettings(_Group):
    """The repository of clusters that have no Repository object; also the default place for status."""

    url: RepositoryUrl = ""


class StatusSettings(_Group):
    """Where the status of config objects is written; an empty url means the fleet."""

    url: RepositoryUrl = ""
    branch: BranchName = "reconciler/status"
    max_children: Annotated[int, Field(ge=0)] = 1_000


class RemoteSettings(_Group):
    """Limits for the remotes of one host, or of one part of it; what is left out is as for all others."""

    url: str
    max_refs_per_push: Annotated[int, Field(ge=3, le=10_000)] | None = None
    max_pushes_per_minute: Annotated[int, Field(ge=0)] | None = None

    @field_validator("url")
    @classmethod
    def _place(cls, value: str) -> str:
        place = re.sub(r"\A[A-Za-z][A-Za-z0-9+.-]*://", "", value)
        if not place.strip("/") or not re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]*)(/[^\s:@]*)?", place):
            raise ValueError("must be a host, or a host and a path or glob, for example github.com/acme/*")
        return value

    @model_validator(mode="after")
    def _limits(self) -> RemoteSettings:
        if self.max_refs_per_push is None and self.max_pushes_per_minute is None:
            raise ValueError("must have a limit, max_refs_per_push or max_pushes_per_minute")
        return self


class GitSettings(_Group):
    """How Git is called, and as whom."""

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
    def _name_and_address(cls, value: str) -> str:
        if not re.fullmatch(r"[^<>\n]+ <[^<>\s]+>", value):
            raise ValueError('must be a name and an address, for example "reconciler <reconciler@localhost>"')
        return value

    @field_validator("allowed_urls", "remotes", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class DraftSettings(_Group):
    """The names of draft branches."""

    branch: str = "drafts/{repository}"
    removals_branch: str = "removals/{repository}"
    config_branch: str = "drafts/config"

    @field_validator("config_branch")
    @classmethod
    def _usable_for_config(cls, value: str) -> str:
        if not value or "{" in value or "}" in value:
            raise ValueError("must be the name of one branch, without placeholders")
        if why := ref_name_fault(value):
            raise ValueError(f"must be a branch name that Git accepts: {why}")
        return value

    @model_validator(mode="after")
    def _apart(self) -> DraftSettings:
        one, other = (
            template.format(repository="x", branch="y", package="z") for template in (self.branch, self.removals_branch)
        )
        if one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/"):
            raise ValueError("must name drafts and removals apart, neither equal to nor below the other")
        return self

    @field_validator("branch", "removals_branch")
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


class ApprovalSettings(_Group):
    """What is published without anybody's approval."""

    by_annotation: bool = False


class ReviewSettings(_Group):
    """Review actions on drafts: propose, approve, reject."""

    clock: Literal["real", "commits"] = "real"


class GuardSettings(_Group):
    """What is too much to happen without somebody's word."""

    max_delete_percent: Annotated[int, Field(ge=0, le=100)] = 30


class MergeSettings(_Group):
    """How packages are brought to another upstream: by whose habits, and who wins where both sides changed."""

    profile: Literal["safe", "compat"] = "safe"
    conflict_policy: Literal["", "upstream", "local", "block"] = ""
    deviations: dict[str, bool] = {}
    list_keys: dict[str, dict[str, list[str] | None]] = {}

    @field_validator("deviations")
    @classmethod
    def _known(cls, value: dict[str, bool]) -> dict[str, bool]:
        # the engine is loaded for those who ask for it only
        from reconciler.packages.update.deviations import DEVIATIONS

        if any(number not in DEVIATIONS for number in value):
            known = sorted(DEVIATIONS, key=lambda number: int(number[1:]))
            raise ValueError(f"must name deviations by their numbers, {', '.join(known)}")
        return value

    @field_validator("list_keys")
    @classmethod
    def _keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        from reconciler.krm.schema import read_key_table

        if problems := read_key_table(value)[1]:
            raise ValueError("; ".join(problems))
        return value


class RuleSettings(_Group):
    """What the rules do that act on every package on its way to a cluster."""

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
    def _group(cls, value: str) -> str:
        if fault := dns_subdomain_fault(value):
            raise ValueError(f"must be the group of an API: {fault}")
        return value

    @field_validator("strict")
    @classmethod
    def _codes(cls, value: list[str]) -> list[str]:
        # the rooms are loaded for those who ask for them only
        from reconciler.rules.overrides import codes as overrides
        from reconciler.rules.templates import codes as templates

        known = overrides.WARNINGS | templates.WARNINGS
        if not known.issuperset(value):
            raise ValueError(f"must name warnings of override policies and templates, {', '.join(sorted(known))}")
        return value

    @field_validator("pod_spec_paths")
    @classmethod
    def _pointers(cls, value: dict[str, str]) -> dict[str, str]:
        for kind, path in value.items():
            if not kind.rpartition("/")[2] or kind.count("/") > 1:
                raise ValueError("must name kinds as group/Kind, as apps.example/CloneSet does")
            try:
                parse_pointer(path)
            except PointerError:
                raise ValueError("must give JSON pointers, as /spec/template/spec is") from None
        return value


class FunctionSettings(_Group):
    """Which functions may run beside those in process, how, and what one call may cost."""

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
    def _paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(path.startswith("/") and path == str(PurePosixPath(path)) and ".." not in path for path in value):
            raise ValueError("must be plain absolute paths, for example /usr/local/bin/*")
        return value

    @field_validator("containers")
    @classmethod
    def _references(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(reference and not re.search(r"\s", reference) for reference in value):
            raise ValueError("must be image references, for example example.com/functions/*")
        return value

    @field_validator("image_prefix")
    @classmethod
    def _folder(cls, value: str) -> str:
        if not re.fullmatch(r"[^\s/]+(/[^\s/]+)*", value):
            raise ValueError("must be a registry and folders without a slash at the end")
        return value


class CelLimits(_Group):
    """What one expression may cost."""

    characters: Annotated[int, Field(ge=1)] = 4_096
    nesting: Annotated[int, Field(ge=1)] = 4
    steps: Annotated[int, Field(ge=1)] = 1_000_000
    bytes: Annotated[int, Field(ge=1)] = 16_777_216


class FunctionLimitSettings(_Group):
    """What the functions that run in process may cost; beyond it the function fails."""

    steps: Annotated[int, Field(ge=1_000)] = 20_000_000
    output_bytes: Annotated[int, Field(ge=1_024)] = 16_777_216
    placeholders: Annotated[int, Field(ge=1, le=1_000)] = 100
    cpu_seconds: Annotated[int, Field(ge=1)] = 10
    memory_bytes: Annotated[int, Field(ge=67_108_864)] = 536_870_912


class LimitSettings(_Group):
    """What one file and one expression may cost; beyond it is a finding."""

    file_bytes: Annotated[int, Field(ge=1_024)] = 4_194_304
    folder_files: Annotated[int, Field(ge=1)] = 200_000
    yaml_depth: Annotated[int, Field(ge=4, le=500)] = 100
    yaml_aliases: Annotated[int, Field(ge=0)] = 1_000
    yaml_documents: Annotated[int, Field(ge=1)] = 2_000
    cel: CelLimits = CelLimits()
    functions: FunctionLimitSettings = FunctionLimitSettings()


class ForgeHost(_Group):
    """Where a forge is: which repositories are on it, what it is, and how we show who we are.

    `url` is what the addresses of its repositories start with, however Git reaches them.
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
    def _place(cls, value: str) -> str:
        if not re.fullmatch(r"(https?://|file://|ssh://|/)[^\s@]+", value):
            raise ValueError("must be an address without credentials, for example https://github.com/acme")
        return value

    @field_validator("api")
    @classmethod
    def _https(cls, value: str) -> str:
        # a token must not go over a network in the clear; a forge on this machine has none to cross
        if value and not re.fullmatch(
            r"https://[^\s@?#]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?[^\s@?#]*", value
        ):
            raise ValueError("must be an https address without credentials, for example https://git.example.com/api/v1")
        return value

    @model_validator(mode="after")
    def _credentials(self) -> ForgeHost:
        app = (self.app_id, self.app_key_file)
        if self.kind in ("gitlab-push-options", "agit"):
            if self.token_file or self.api or any(app):
                raise ValueError(f"must name neither api nor credentials: {self.kind} goes by what Git pushes")
            return self
        if any(app) and (self.kind != "github" or not all(app) or self.token_file):
            raise ValueError("must name app_id with app_key_file, on GitHub alone, and without a token_file")
        if not self.token_file and not any(app):
            raise ValueError("must name a token_file, or on GitHub an app_id with an app_key_file")
        if not self.api and not self.url.startswith("https://"):
            raise ValueError("must name the api, where url does not start with https://")
        return self


_AUTHENTICATED = re.compile(r"(?:tls|wss)://")
_LOOPBACK = re.compile(r"[a-z]+://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d+\Z")


class RenderingSettings(_Group):
    """Where packages are rendered when there are many: beside this process, or on a Dask cluster."""

    workers: Annotated[int, Field(ge=0, le=256)] = 0
    dask: str = ""
    timeout_seconds: Annotated[int, Field(ge=1)] = 600

    @field_validator("dask")
    @classmethod
    def _address(cls, value: str) -> str:
        if value and not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^\s/]+", value):
            raise ValueError('must be the address of a scheduler, for example "tls://scheduler:8786"')
        # a process that reaches a scheduler can run code on its workers, and Dask authenticates by TLS only
        if value and not (_AUTHENTICATED.match(value) or _LOOPBACK.match(value)):
            raise ValueError(
                'must start with tls:// or wss:// unless the scheduler is on this machine, for example "tls://scheduler:8786"'
            )
        return value


class ForgeSettings(_Group):
    """Pull requests: at which forges, and how many."""

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
    def _plain(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not label.strip() or "," in label or not label.isprintable() for label in value):
            raise ValueError("must be names of labels, without commas")
        if ACCEPT_CONFLICTS in value:
            raise ValueError(f"must not have {ACCEPT_CONFLICTS}, with which reviewers accept conflicts")
        return value


class WebhookSettings(_Group):
    """Where hosts may tell us that something moved, and what they sign with."""

    listen: str = ""
    secret_file: str = ""
    gather_seconds: Annotated[float, Field(ge=0, le=60)] = 2.0

    @field_validator("listen")
    @classmethod
    def _address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value

    @model_validator(mode="after")
    def _signed(self) -> WebhookSettings:
        if self.listen and not self.secret_file:
            raise ValueError("must name a secret_file beside listen: whoever is not signed is not heard")
        return self


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
    def _shard(cls, value: str) -> str:
        read_shard(value)
        return value

    @field_validator("state_ref")
    @classmethod
    def _state_ref(cls, value: str) -> str:
        prefix = value.removesuffix(STATE_PLACEHOLDER)
        # all states are listed by what their refs start with, so that nothing may follow the name
        if prefix == value or STATE_PLACEHOLDER in prefix or not (value.startswith("refs/") and prefix.endswith("/")):
            raise ValueError(
                "must start with refs/ and end in /{repository}, as refs/reconciler/state/{repository} does"
            )
        if why := ref_name_fault(f"{prefix}x"):
            raise ValueError(f"must make ref names that Git accepts: {why}")
        return value


def load_settings(file: str | None, environment: Mapping[str, str], folder: Path) -> Settings:
    """Read the settings: the named file, else `reconciler.yaml` in `folder`, else defaults; then the environment.

    `RECONCILER_<GROUP>__<KEY>` overrides a single setting; kpt's KRM_FN_RUNTIME and KPT_IMAGE_PREFIX count where
    nothing else says so. Something without a value has its default. Raises SettingsError.
    """
    path = Path(file) if file else folder / DEFAULT_FILE
    if file and not path.is_file():
        raise SettingsError(f"{path}: the settings file must exist and be a regular file")
    document = _read(path) if path.is_file() else None
    data = document.data if document else {}
    if not isinstance(data, dict):
        raise SettingsError(f"{path}:1: the settings must be a mapping of groups, not {type(data).__name__}")
    merged, overridden = _with_environment(_written(data), environment)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        places = _Places(path, document, overridden)
        raise SettingsError("\n".join(_explain(one, places) for one in error.errors())) from None


def schema_text() -> str:
    """Return the JSON Schema of the settings file, as `config/schema.json` holds it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


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


def _written(data: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return what says something: a group whose settings are all commented out is none."""
    written = {key: _written(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in written.items() if value is not None}


def _with_environment(
    data: dict[Any, Any], environment: Mapping[str, str]
) -> tuple[dict[Any, Any], dict[tuple[str, ...], str]]:
    """Return the data with the environment on top, and the variables by the setting that they override."""
    overridden: dict[tuple[str, ...], str] = {}
    for name, (group, key) in _OF_KPT.items():
        written = data.get(group)
        if environment.get(name) and not (isinstance(written, dict) and key in written):
            data = _put(data, (group, key), environment[name])
            overridden[group, key] = name
    for name, text in sorted(environment.items()):
        path = tuple(name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"))
        # Kubernetes puts RECONCILER_PORT and the like into pods beside a service of our name: no business of ours
        if name.startswith(ENVIRONMENT_PREFIX) and path[0] in Settings.model_fields:
            data = _put(data, path, _value(path, text))
            overridden[path] = name
    return data, overridden


def _put(data: object, path: tuple[str, ...], value: object) -> dict[Any, Any]:
    inner = dict(data) if isinstance(data, dict) else {}
    name, *rest = path
    return {**inner, name: _put(inner.get(name), tuple(rest), value) if rest else value}


def _value(path: tuple[str, ...], text: str) -> object:
    """Return a variable's text as the setting wants it: texts as they are, all else as YAML reads it."""
    group = _group_at(path[:-1])
    field = group.model_fields.get(path[-1]) if group else None
    if field is None or not (field.annotation in (bool, int, float) or get_origin(field.annotation) in (tuple, dict)):
        return text
    try:
        documents = parse(text).documents
    except YamlError:
        return text
    return documents[0].data if documents else text


def _group_at(path: Iterable[Any]) -> type[BaseModel] | None:
    model: type[BaseModel] = Settings
    for name in path:
        if isinstance(name, int):
            # a list of groups stands for each of them
            continue
        field = model.model_fields.get(name)
        kind = field.annotation if field else None
        kind = get_args(kind)[0] if get_origin(kind) is tuple else kind
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return None
        model = kind
    return model


@dataclass(frozen=True)
class _Places:
    """Where settings were written: in a file, or in the variables that override it."""

    path: Path
    document: Document | None
    overridden: Mapping[tuple[str, ...], str]

    def of(self, location: tuple[str | int, ...]) -> str:
        """Return the variable that set this, something in it or all around it; else its line."""
        for path, variable in self.overridden.items():
            if all(name == step for name, step in zip(path, map(str, location), strict=False)):
                return variable
        return f"{self.path}:{self.document.line_of(location)}" if self.document else str(self.path)


def _explain(problem: ErrorDetails, places: _Places) -> str:
    location = problem["loc"]
    start = f"{places.of(location)}: {'.'.join(map(str, location))}"
    value = _shown(location, problem["input"])
    match problem["type"]:
        case "extra_forbidden":
            return f"{start}: unknown setting; allowed here: {_names(location[:-1])}"
        case "model_type":
            return f"{start}: must be a mapping of settings ({_names(location)}), not {value!r}"
        case _:
            why = problem["msg"].removeprefix("Value error, ").replace("Input should", "must")
            return f"{start}: {_PLAIN.get(problem['type'], why)}, not {value!r}"


def _shown(location: tuple[str | int, ...], value: object) -> object:
    """Return a value for a message, without the credentials of URLs in it and without values that may be secrets.

    These are the values of unknown settings, as `token`, and texts inside of a list or mapping in place of a file.
    """
    if isinstance(value, str):
        is_url = any(name in _URL_FIELDS for name in location)
        return redact_url(value) if is_url else redact_urls(value)
    if isinstance(value, dict):
        return {
            key: _shown((*location, key), inner) if _is_shown(location, key) else MASK for key, inner in value.items()
        }
    if isinstance(value, list):
        is_file = any(str(name).endswith("_file") for name in location)
        return [MASK if is_file else _shown(location, one) for one in value]
    return value


def _is_shown(location: tuple[str | int, ...], key: object) -> bool:
    """Return whether a message shows the value of a key: it is a setting, or has no name that secrets have."""
    group = _group_at(location)
    if group:
        return key in group.model_fields
    is_file = any(str(name).endswith("_file") for name in location)
    return not (is_file or _SECRET_NAME.search(str(key)))


def _names(path: Iterable[str | int]) -> str:
    group = _group_at(path)
    return ", ".join(sorted(group.model_fields)) if group else ""
