"""The settings of the reconciler: models, the loader for file and environment, validation errors and JSON Schema.

Only this module reads environment variables as settings. `scripts/make_reference.py` generates the list of all settings
in `config/reconciler.yaml`, the JSON Schema in `config/schema.json` and the reference page from the models.
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


def _setting(default: Any, description: str, **limits: Any) -> Any:
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
            "must not contain a user name, password or token (CredentialInUrl): put them into the file that"
            " `git.credentials_file` names"
        )
    return value


RepositoryUrl = Annotated[str, AfterValidator(_check_no_credentials)]


class ConfigSettings(_Group):
    """Location of the config: a Git URL, the path of a bare repository, or a plain folder."""

    url: RepositoryUrl = _setting(
        "",
        "The Git URL, the path of a bare repository, or the path of a plain folder that contains the config; the "
        "argument CONFIG overrides this setting.",
    )
    branch: BranchName = _setting("main", "The branch of the config repository.")
    directory: str = _setting("", "The folder in the repository that contains the config; empty means the root folder.")


class FleetSettings(_Group):
    """Repository for all clusters that have no Repository object. It is also the default repository for the status."""

    url: RepositoryUrl = _setting(
        "",
        "The Git URL of the repository with the branches of clusters that have no Repository object; this "
        "repository is also the default of status.url.",
    )


class StatusSettings(_Group):
    """Repository and branch for the status of config objects. If `url` is empty, the fleet repository is used."""

    url: RepositoryUrl = _setting(
        "", "The Git URL of the repository with the status branch; empty means the value of fleet.url."
    )
    branch: BranchName = _setting(
        "reconciler/status",
        "The name of the status branch, which contains objects/ and summary.yaml; do not deploy this branch to a "
        "cluster.",
    )
    max_children: int = _setting(
        1_000,
        "The largest number of package variants of one set with individual status files; if a set has more "
        "variants, only variants with problems have a file.",
        ge=0,
    )


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

    author: str = _setting(
        "reconciler <reconciler@localhost>",
        "The author and committer of the commits that the reconciler creates; all daemons of a fleet must use the "
        "same value, so that they create identical commits.",
    )
    timeout_seconds: int = _setting(120, "The time limit of one Git command, in seconds.", ge=1)
    max_refs_per_push: int = _setting(
        500,
        "The largest number of refs in one push; all refs of one target are always in the same push.",
        ge=3,
        le=10_000,
    )
    max_pushes_per_minute: int = _setting(
        0, "The largest number of pushes per minute to one remote; 0 means no limit.", ge=0
    )
    remotes: tuple[RemoteSettings, ...] = _setting(
        (),
        'Different limits for some remotes, for example [{url: "github.com/*", max_pushes_per_minute: 6}, {url: '
        "gitlab.com, max_refs_per_push: 3}]; url is a host, a host with a path, or a glob; the first item that "
        "matches a remote applies to it.",
    )
    max_fetches: int = _setting(8, "The largest number of remotes that are fetched at the same time.", ge=1, le=256)
    max_pushes: int = _setting(8, "The largest number of remotes that are pushed to at the same time.", ge=1, le=256)
    patience_seconds: float = _setting(
        10.0,
        "The longest time that a pass of the daemon waits for the fetch or push of one remote, in seconds; after "
        "that time, the pass continues without this remote; commands wait for all remotes.",
        gt=0,
    )
    allowed_urls: tuple[RepositoryUrl, ...] = _setting(
        (),
        "The repositories that the reconciler can read and write, as complete URLs, URLs of parent folders or "
        "globs; an empty list allows all https and ssh URLs and all local paths.",
    )
    credentials_file: str = _setting(
        "",
        "A file with lines of the form https://user:token@host, the format of git-credential-store; a path after "
        "the host limits a line to the repositories below that path.",
    )
    ssh_key_file: str = _setting("", "The file of the private SSH key; empty means the defaults of ssh.")
    known_hosts_file: str = _setting("", "The known_hosts file for SSH; empty means the defaults of ssh.")
    revision_tags: Literal["used", "all", "none"] = _setting(
        "used",
        "The packages whose published revisions get a tag: used means packages that a package variant names as its "
        "upstream, all means all packages, and none means no package.",
    )

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

    branch: str = _setting(
        "drafts/{repository}",
        "The name of draft branches, which can contain the placeholders {repository}, {branch} and {package}; if "
        "the name contains {package}, each package has its own draft branch. GitOps Promoter requires "
        "{branch}-next.",
    )
    removals_branch: str = _setting(
        "removals/{repository}",
        "The name of removal drafts, which delete published packages; the name can contain the same placeholders, "
        "and must not be a subfolder of the name of another draft branch.",
    )
    config_branch: str = _setting(
        "drafts/config",
        "The branch of the config repository on which the reconciler proposes newer revisions of packages with "
        "tagMode rewrite.",
    )

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

    by_annotation: bool = _setting(
        False,
        "Whether the reconciler publishes a draft without a review if the owner of the package has the annotation "
        "approval.nephio.org/policy with the value initial or always.",
    )


class ReviewSettings(_Group):
    """Settings for review actions: propose, approve and reject a draft."""

    clock: Literal["real", "commits"] = _setting(
        "real",
        "The date of the commit with which approve publishes a draft: real means the time of the command, and "
        "commits means the latest date of the parent commits; with commits, the commit ID does not depend on the "
        "time of the command.",
    )


class GuardSettings(_Group):
    """Limits for deletions. If a pass would delete more, a person must acknowledge the deletion."""

    max_delete_percent: int = _setting(
        30,
        "The largest part of the packages that one pass can delete without a confirmation, in percent; this limit "
        "applies to the packages of each set and to the published packages of each target.",
        ge=0,
        le=100,
    )


class MergeSettings(_Group):
    """Merge behavior when a package is updated to another upstream revision, and the handling of conflicts."""

    profile: Literal["safe", "compat"] = _setting(
        "safe", "The merge behavior: safe fixes known defects of kpt, and compat reproduces kpt exactly."
    )
    conflict_policy: Literal["", "upstream", "local", "block"] = _setting(
        "",
        "The side whose value the draft contains after a conflict between a local change and an upstream change: "
        "upstream or local; block creates no draft. Empty means local in the profile safe, and upstream in the "
        "profile compat; the field conflictPolicy of a PackageVariant overrides this setting.",
    )
    deviations: dict[str, bool] = _setting(
        {}, "Switches single deviations from kpt on or off, independently of the profile, for example {D5: false}."
    )
    list_keys: dict[str, dict[str, list[str] | None]] = _setting(
        {},
        "The fields that identify the elements of a list if no schema defines them, for example "
        "{example.org/Gateway: {spec/ports: [name]}}.",
    )

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

    on_missing_policy: Literal["fail", "ignore"] = _setting(
        "fail",
        "The behavior if a resource of a package names an override policy that does not exist: fail creates no "
        "draft and does not change the published package, and ignore renders the package without the policy.",
    )
    secrets: Literal["warn", "block"] = _setting(
        "warn",
        "The behavior if a package contains a Secret with values, which would stay in the Git history permanently: "
        "warn creates the draft and reports a warning, and block creates no draft.",
    )
    pod_spec_paths: dict[str, str] = _setting(
        {},
        "For each custom kind, the JSON pointer of the pod spec in resources of this kind, for example "
        "{apps.example/CloneSet: /spec/template/spec}.",
    )
    strict: list[str] = _setting(
        [],
        "The codes of warnings about override policies and Kafka templates that become errors and block the "
        "package, for example [ReplaceCreatedMember, ReservedLabel, UnknownTemplateProperty].",
    )
    central_cluster: str = _setting(
        "",
        "The name of the cluster for Plugins without a clusterName; if this setting is empty, such Plugins have no "
        "target.",
    )
    base_domain: str = _setting(
        "",
        "The value of the Plugin option global.greenhouse.baseDomain; if this setting is empty, Plugins do not get "
        "this option.",
    )
    expressions: bool = _setting(
        True,
        "Whether options of Plugins can contain expressions; if the value is false, an option with an expression "
        "blocks its Plugin.",
    )
    plugin_outputs: list[Literal["values", "helmrelease"]] = _setting(
        [],
        "The additional files of each Plugin: values adds the file values.yaml with the Helm values without "
        "secrets, and helmrelease adds a Flux HelmRelease; Flux rejects a branch that contains values.yaml.",
    )
    runtime_composition: bool = _setting(
        True,
        "Whether the config can contain objects of the kind Component, which have their own list of addons; if the "
        "value is false, each component needs a component type.",
    )
    template_mode: Literal["materialise", "report"] = _setting(
        "materialise",
        "The handling of KafkaNodePool templates: materialise writes the fields that a pool inherits from its Kafka "
        "into the pool, and report does not change the pool and only reports the inherited fields.",
    )
    crd_group: str = _setting(
        "platform",
        "The API group of the CRDs that component types generate; if you install these CRDs on a cluster, the group "
        "must contain a dot.",
    )

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

    exec: tuple[str, ...] = _setting(
        (),
        "The absolute paths of programs that packages can run with exec; * and ? match characters of one file or "
        "folder name.",
    )
    containers: tuple[str, ...] = _setting(
        (), "The complete references of images that packages can run as containers; * and ? match any characters."
    )
    engine: Literal["", "podman", "docker", "nerdctl"] = _setting(
        "",
        "The container engine: podman, docker or nerdctl; empty means the value of the variable KRM_FN_RUNTIME, or "
        "else the first of these engines on the PATH.",
    )
    pull: Literal["Always", "IfNotPresent", "Never"] = _setting(
        "IfNotPresent", "When the reconciler pulls images: Always (once per pass), IfNotPresent or Never."
    )
    image_prefix: str = _setting(
        "ghcr.io/kptdev/krm-functions-catalog",
        "The prefix that is added to image names without a slash; if the settings file does not contain this "
        "setting, the variable KPT_IMAGE_PREFIX applies.",
    )
    timeout_seconds: int = _setting(300, "The time limit of one call of a program or container, in seconds.", ge=1)
    memory_bytes: int = _setting(536_870_912, "The memory limit of one call, in bytes.", ge=16_777_216)
    output_bytes: int = _setting(67_108_864, "The size limit of the output of one call, in bytes.", ge=1_024)

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

    characters: int = _setting(4_096, "The length limit of one expression, in characters.", ge=1)
    nesting: int = _setting(4, "The largest nesting depth of loops in one expression, in levels.", ge=1)
    steps: int = _setting(1_000_000, "The cost limit of one evaluation, in steps.", ge=1)
    bytes: int = _setting(16_777_216, "The limit of the memory that one evaluation allocates, in bytes.", ge=1)


class FunctionLimitSettings(_Group):
    """Limits of built-in functions and starlark scripts. A function that exceeds a limit fails."""

    steps: int = _setting(
        20_000_000,
        "The cost limit of all calls of built-in functions in one render of a package, in steps of about one "
        "microsecond.",
        ge=1_000,
    )
    output_bytes: int = _setting(
        16_777_216,
        "The limit of the output of all calls of built-in functions in one render of a package, in bytes.",
        ge=1_024,
    )
    placeholders: int = _setting(
        100,
        "The largest number of placeholders in a setter comment, and the largest number of groups in a regular "
        "expression.",
        ge=1,
        le=1_000,
    )
    cpu_seconds: int = _setting(10, "The CPU time limit of one call of a starlark script, in seconds.", ge=1)
    memory_bytes: int = _setting(
        536_870_912,
        "The limit of the memory (address space) of the process that runs starlark scripts, in bytes.",
        ge=67_108_864,
    )


class LimitSettings(_Group):
    """Limits of config files, packages, expressions and functions. If a limit is exceeded, a finding reports it."""

    file_bytes: int = _setting(4_194_304, "The size limit of one config file, in bytes.", ge=1_024)
    folder_files: int = _setting(
        200_000,
        "The largest number of files and folders in one package, and in one top-level folder of the config.",
        ge=1,
    )
    yaml_depth: int = _setting(100, "The largest nesting depth of a YAML document, in levels.", ge=4, le=500)
    yaml_aliases: int = _setting(1_000, "The largest number of YAML aliases in one file.", ge=0)
    yaml_documents: int = _setting(2_000, "The largest number of YAML documents in one file.", ge=1)
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

    workers: int = _setting(
        0,
        "The number of processes that render packages if a pass renders hundreds of packages; 0 means one process "
        "per core, and 1 means that the main process renders all packages.",
        ge=0,
        le=256,
    )
    dask: str = _setting(
        "",
        "The address of the scheduler of a Dask cluster that renders the packages instead of local processes, for "
        "example tls://scheduler:8786; the daemon and the workers need the Python extra reconciler[dask].",
    )
    timeout_seconds: int = _setting(
        600,
        "The time limit for a batch of packages on a worker, in seconds; after this time, the main process renders "
        "the packages itself.",
        ge=1,
    )

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

    hosts: tuple[ForgeHost, ...] = _setting(
        (),
        "The forges on which the reconciler opens pull requests for drafts, for example [{url: "
        "https://github.com/acme, kind: github, token_file: /run/token}]. A forge has the fields url (the URL "
        "prefix of its repositories), kind (github, gitlab, gitea, gitlab-push-options or agit), and api (only if "
        "the URL of the API is not the default). For authentication, it has token_file, or app_id, app_key_file and "
        "app_installation of a GitHub App.",
    )
    draft: bool = _setting(
        True,
        "Whether new pull requests are marked as drafts; when a person proposes the draft branch, its pull request "
        "is marked as ready for review.",
    )
    labels: tuple[str, ...] = _setting((), "The labels of new pull requests.")
    check: bool = _setting(
        True,
        "Whether the reconciler sets a check on the head commit of a draft branch; the check reports the reasons "
        "that block the draft.",
    )
    merge: Literal["", "merge", "squash", "rebase"] = _setting(
        "",
        "The method with which approve publishes a complete draft that has a pull request: with merge, squash or "
        "rebase, the forge merges the pull request, so that the rules of the forge apply; empty means that approve "
        "pushes to the target branch.",
    )
    max_open: int = _setting(
        0,
        "The largest number of open pull requests that the reconciler opened in one repository; 0 means no limit.",
        ge=0,
    )
    new_per_hour: int = _setting(
        200,
        "The largest number of pull requests that the reconciler opens per hour on one forge; 0 means no limit; "
        "GitHub allows 500 new objects of all kinds per hour.",
        ge=0,
    )
    writes_per_minute: int = _setting(
        60, "The largest number of write requests per minute to the API of one forge; 0 means no limit.", ge=0
    )

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

    listen: str = _setting(
        "",
        "The address on which the service receives webhooks, as host:port, for example 127.0.0.1:8080; if this "
        "setting is empty, the service receives no webhooks.",
    )
    secret_file: str = _setting(
        "",
        "The file with the secrets of the webhook signatures, one secret per line; the service reads the file again "
        "after a change.",
    )
    gather_seconds: float = _setting(
        2.0,
        "The time that the service waits for more webhooks before it starts a pass, in seconds; because of this "
        "time, several webhooks of one push start only one pass.",
        ge=0,
        le=60,
    )

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

    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "The lowest level of the events that the service logs: debug, info, warning or error."
    )
    format: Literal["auto", "json", "text"] = _setting(
        "auto", "The log format: json, text, or auto, which is text on a terminal and JSON otherwise."
    )


class Settings(_Group):
    """All settings. The defaults are those of a new installation."""

    config: ConfigSettings = ConfigSettings()
    fleet: FleetSettings = FleetSettings()
    status: StatusSettings = StatusSettings()
    cache: str = _setting(
        "~/.cache/reconciler",
        "The folder for local data, such as bare mirrors of all repositories; you can delete the folder while no "
        "process uses it. The folder has the mode 0700, because drafts can contain Secrets; a folder that other "
        "users can write to is an error.",
    )
    poll_seconds: float = _setting(60.0, "The time between two passes of the service, in seconds.", gt=0)
    poll_jitter_percent: int = _setting(
        10,
        "The largest random change of poll_seconds in both directions, in percent; because of this change, several "
        "daemons do not poll at the same time.",
        ge=0,
        le=100,
    )
    max_backoff_seconds: float = _setting(
        900.0,
        "The longest pause after failures of one remote, in seconds; the pause doubles after each failure until it "
        "reaches this limit.",
        gt=0,
    )
    state_ref: str = _setting(
        "refs/reconciler/state/{repository}",
        "The name of the ref that contains the state of one target; if the Git host allows only branches, use "
        "refs/heads/reconciler/state/{repository}.",
    )
    shard: str = _setting(
        "1/1",
        "The shard of the targets that this process reconciles: i/n means the i-th of n shards (n is at most 1000), "
        "and 1/1 means all targets; the option --shard overrides this setting.",
    )
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
