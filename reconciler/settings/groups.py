"""Groups of settings about the config, Git, drafts, rules, functions and limits."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from reconciler.api.profile import Profile
from reconciler.krm.json_pointer import PointerError, parse_pointer
from reconciler.krm.names import validate_dns_subdomain, validate_ref_name
from reconciler.settings.declaration import BranchName, RepositoryUrl, SettingsGroup, declare

DRAFT_PLACEHOLDERS = ("{repository}", "{branch}", "{package}")


class ConfigSettings(SettingsGroup):
    """Location of the config: a Git URL, the path of a bare repository, or a plain folder."""

    url: RepositoryUrl = declare(
        "",
        "The Git URL, the path of a bare repository, or the path of a plain folder that contains the config; the "
        "argument CONFIG overrides this setting.",
    )
    branch: BranchName = declare("main", "The branch of the config repository.")
    directory: str = declare("", "The folder in the repository that contains the config; empty means the root folder.")


class FleetSettings(SettingsGroup):
    """Repository for all clusters that have no Repository object. It is also the default repository for the status."""

    url: RepositoryUrl = declare(
        "",
        "The Git URL of the repository with the branches of clusters that have no Repository object; this "
        "repository is also the default of status.url.",
    )


class StatusSettings(SettingsGroup):
    """Repository and branch for the status of config objects. If `url` is empty, the fleet repository is used."""

    url: RepositoryUrl = declare(
        "", "The Git URL of the repository with the status branch; empty means the value of fleet.url."
    )
    branch: BranchName = declare(
        "reconciler/status",
        "The name of the status branch, which contains objects/ and summary.yaml; do not deploy this branch to a "
        "cluster.",
    )
    max_children: int = declare(
        1_000,
        "The largest number of package variants of one set with individual status files; if a set has more "
        "variants, only variants with problems have a file.",
        ge=0,
    )


class RemoteSettings(SettingsGroup):
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


class GitSettings(SettingsGroup):
    """Author of commits, limits, credentials and allowed URLs for Git operations."""

    author: str = declare(
        "reconciler <reconciler@localhost>",
        "The author and committer of the commits that the reconciler creates; all daemons of a fleet must use the "
        "same value, so that they create identical commits.",
    )
    timeout_seconds: int = declare(120, "The time limit of one Git command, in seconds.", ge=1)
    max_refs_per_push: int = declare(
        500,
        "The largest number of refs in one push; all refs of one target are always in the same push.",
        ge=3,
        le=10_000,
    )
    max_pushes_per_minute: int = declare(
        0, "The largest number of pushes per minute to one remote; 0 means no limit.", ge=0
    )
    remotes: tuple[RemoteSettings, ...] = declare(
        (),
        'Different limits for some remotes, for example [{url: "github.com/*", max_pushes_per_minute: 6}, {url: '
        "gitlab.com, max_refs_per_push: 3}]; url is a host, a host with a path, or a glob; the first item that "
        "matches a remote applies to it.",
    )
    max_fetches: int = declare(8, "The largest number of remotes that are fetched at the same time.", ge=1, le=256)
    max_pushes: int = declare(8, "The largest number of remotes that are pushed to at the same time.", ge=1, le=256)
    patience_seconds: float = declare(
        10.0,
        "The longest time that a pass of the daemon waits for the fetch or push of one remote, in seconds; after "
        "that time, the pass continues without this remote; commands wait for all remotes.",
        gt=0,
    )
    allowed_urls: tuple[RepositoryUrl, ...] = declare(
        (),
        "The repositories that the reconciler can read and write, as complete URLs, URLs of parent folders or "
        "globs; an empty list allows all https and ssh URLs and all local paths.",
    )
    credentials_file: str = declare(
        "",
        "A file with lines of the form https://user:token@host, the format of git-credential-store; a path after "
        "the host limits a line to the repositories below that path.",
    )
    ssh_key_file: str = declare("", "The file of the private SSH key; empty means the defaults of ssh.")
    known_hosts_file: str = declare("", "The known_hosts file for SSH; empty means the defaults of ssh.")
    revision_tags: Literal["used", "all", "none"] = declare(
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


class DraftSettings(SettingsGroup):
    """Names of draft branches."""

    branch: str = declare(
        "drafts/{repository}",
        "The name of draft branches, which can contain the placeholders {repository}, {branch} and {package}; if "
        "the name contains {package}, each package has its own draft branch. GitOps Promoter requires "
        "{branch}-next.",
    )
    removals_branch: str = declare(
        "removals/{repository}",
        "The name of removal drafts, which delete published packages; the name can contain the same placeholders, "
        "and must not be a subfolder of the name of another draft branch.",
    )
    config_branch: str = declare(
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


class ApprovalSettings(SettingsGroup):
    """Settings for the approval of drafts by an annotation instead of a person."""

    by_annotation: bool = declare(
        False,
        "Whether the reconciler publishes a draft without a review if the owner of the package has the annotation "
        "approval.nephio.org/policy with the value initial or always.",
    )


class ReviewSettings(SettingsGroup):
    """Settings for review actions: propose, approve and reject a draft."""

    clock: Literal["real", "commits"] = declare(
        "real",
        "The date of the commit with which approve publishes a draft: real means the time of the command, and "
        "commits means the latest date of the parent commits; with commits, the commit ID does not depend on the "
        "time of the command.",
    )


class GuardSettings(SettingsGroup):
    """Limits for deletions. If a pass would delete more, a person must acknowledge the deletion."""

    max_delete_percent: int = declare(
        30,
        "The largest part of the packages that one pass can delete without a confirmation, in percent; this limit "
        "applies to the packages of each set and to the published packages of each target.",
        ge=0,
        le=100,
    )


class MergeSettings(SettingsGroup):
    """Merge behavior when a package is updated to another upstream revision, and the handling of conflicts."""

    profile: Profile = declare(
        "safe", "The merge behavior: safe fixes known defects of kpt, and compat reproduces kpt exactly."
    )
    conflict_policy: Literal["", "upstream", "local", "block"] = declare(
        "",
        "The side whose value the draft contains after a conflict between a local change and an upstream change: "
        "upstream or local; block creates no draft. Empty means local in the profile safe, and upstream in the "
        "profile compat; the field conflictPolicy of a PackageVariant overrides this setting.",
    )
    deviations: dict[str, bool] = declare(
        {}, "Switches single deviations from kpt on or off, independently of the profile, for example {D5: false}."
    )
    list_keys: dict[str, dict[str, list[str] | None]] = declare(
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


class RuleSettings(SettingsGroup):
    """Behavior of the controllers, and of the checks of rendered packages."""

    on_missing_policy: Literal["fail", "ignore"] = declare(
        "fail",
        "The behavior if a resource of a package names an override policy that does not exist: fail creates no "
        "draft and does not change the published package, and ignore renders the package without the policy.",
    )
    secrets: Literal["warn", "block"] = declare(
        "warn",
        "The behavior if a package contains a Secret with values, which would stay in the Git history permanently: "
        "warn creates the draft and reports a warning, and block creates no draft.",
    )
    pod_spec_paths: dict[str, str] = declare(
        {},
        "For each custom kind, the JSON pointer of the pod spec in resources of this kind, for example "
        "{apps.example/CloneSet: /spec/template/spec}.",
    )
    strict: list[str] = declare(
        [],
        "The codes of warnings about override policies and Kafka templates that become errors and block the "
        "package, for example [ReplaceCreatedMember, ReservedLabel, UnknownTemplateProperty].",
    )
    central_cluster: str = declare(
        "",
        "The name of the cluster for Plugins without a clusterName; if this setting is empty, such Plugins have no "
        "target.",
    )
    base_domain: str = declare(
        "",
        "The value of the Plugin option global.greenhouse.baseDomain; if this setting is empty, Plugins do not get "
        "this option.",
    )
    expressions: bool = declare(
        True,
        "Whether options of Plugins can contain expressions; if the value is false, an option with an expression "
        "blocks its Plugin.",
    )
    plugin_outputs: list[Literal["values", "helmrelease"]] = declare(
        [],
        "The additional files of each Plugin: values adds the file values.yaml with the Helm values without "
        "secrets, and helmrelease adds a Flux HelmRelease; Flux rejects a branch that contains values.yaml.",
    )
    runtime_composition: bool = declare(
        True,
        "Whether the config can contain objects of the kind Component, which have their own list of addons; if the "
        "value is false, each component needs a component type.",
    )
    template_mode: Literal["materialise", "report"] = declare(
        "materialise",
        "The handling of KafkaNodePool templates: materialise writes the fields that a pool inherits from its Kafka "
        "into the pool, and report does not change the pool and only reports the inherited fields.",
    )
    crd_group: str = declare(
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


class FunctionSettings(SettingsGroup):
    """Programs and container images that packages may run as functions, and the limits of one function call."""

    exec: tuple[str, ...] = declare(
        (),
        "The absolute paths of programs that packages can run with exec; * and ? match characters of one file or "
        "folder name.",
    )
    containers: tuple[str, ...] = declare(
        (), "The complete references of images that packages can run as containers; * and ? match any characters."
    )
    engine: Literal["", "podman", "docker", "nerdctl"] = declare(
        "",
        "The container engine: podman, docker or nerdctl; empty means the value of the variable KRM_FN_RUNTIME, or "
        "else the first of these engines on the PATH.",
    )
    pull: Literal["Always", "IfNotPresent", "Never"] = declare(
        "IfNotPresent", "When the reconciler pulls images: Always (once per pass), IfNotPresent or Never."
    )
    image_prefix: str = declare(
        "ghcr.io/kptdev/krm-functions-catalog",
        "The prefix that is added to image names without a slash; if the settings file does not contain this "
        "setting, the variable KPT_IMAGE_PREFIX applies.",
    )
    timeout_seconds: int = declare(300, "The time limit of one call of a program or container, in seconds.", ge=1)
    memory_bytes: int = declare(536_870_912, "The memory limit of one call, in bytes.", ge=16_777_216)
    output_bytes: int = declare(67_108_864, "The size limit of the output of one call, in bytes.", ge=1_024)

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


class CelLimits(SettingsGroup):
    """Limits of one CEL expression."""

    characters: int = declare(4_096, "The length limit of one expression, in characters.", ge=1)
    nesting: int = declare(4, "The largest nesting depth of loops in one expression, in levels.", ge=1)
    steps: int = declare(1_000_000, "The cost limit of one evaluation, in steps.", ge=1)
    bytes: int = declare(16_777_216, "The limit of the memory that one evaluation allocates, in bytes.", ge=1)


class FunctionLimitSettings(SettingsGroup):
    """Limits of built-in functions and starlark scripts. A function that exceeds a limit fails."""

    steps: int = declare(
        20_000_000,
        "The cost limit of all calls of built-in functions in one render of a package, in steps of about one "
        "microsecond.",
        ge=1_000,
    )
    output_bytes: int = declare(
        16_777_216,
        "The limit of the output of all calls of built-in functions in one render of a package, in bytes.",
        ge=1_024,
    )
    placeholders: int = declare(
        100,
        "The largest number of placeholders in a setter comment, and the largest number of groups in a regular "
        "expression.",
        ge=1,
        le=1_000,
    )
    cpu_seconds: int = declare(10, "The CPU time limit of one call of a starlark script, in seconds.", ge=1)
    memory_bytes: int = declare(
        536_870_912,
        "The limit of the memory (address space) of the process that runs starlark scripts, in bytes.",
        ge=67_108_864,
    )


class LimitSettings(SettingsGroup):
    """Limits of config files, packages, expressions and functions. If a limit is exceeded, a finding reports it."""

    file_bytes: int = declare(4_194_304, "The size limit of one config file, in bytes.", ge=1_024)
    folder_files: int = declare(
        200_000,
        "The largest number of files and folders in one package, and in one top-level folder of the config.",
        ge=1,
    )
    yaml_depth: int = declare(100, "The largest nesting depth of a YAML document, in levels.", ge=4, le=500)
    yaml_aliases: int = declare(1_000, "The largest number of YAML aliases in one file.", ge=0)
    yaml_documents: int = declare(2_000, "The largest number of YAML documents in one file.", ge=1)
    cel: CelLimits = CelLimits()
    functions: FunctionLimitSettings = FunctionLimitSettings()
