"""Targets: the branches that receive packages. This module also finds conflicting targets and reserved branch names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.api.porch import PORCH_API_VERSION
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.results import ConfigSources
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field

STATUS_FOLDER = ".reconciler"


@dataclass(frozen=True)
class Target:
    """A location that receives packages: a Repository, or the branch of a cluster in the fleet repository.

    Attributes:
        key: The object that defines the target.
        display_url: The URL as written in the config, without credentials.
        directory: The folder of the packages, without a trailing slash, or "" for the root of the repository.
        tag_prefix: The prefix of the tags of published revisions.
        normalized_url: The normal form of the URL, which is equal for all spellings. "" if `url` is in normal form.
        definition_sources: The config files of the Repository, and of the objects of the cluster.
    """

    key: ObjectKey
    url: str
    display_url: str
    branch: str
    directory: str
    is_deployment: bool
    location: SourceLocation
    tag_prefix: str = ""
    api_version: str = PORCH_API_VERSION
    normalized_url: str = ""
    definition_sources: ConfigSources = field(default_factory=dict, compare=False)

    @property
    def repository_id(self) -> str:
        """Identity of the repository. All spellings of the URL of a repository have the same identity."""
        return self.normalized_url or self.url

    @property
    def title(self) -> str:
        """Kind and name of the object that defines the target, for messages."""
        return f"{self.key.kind} {self.name}"

    @property
    def name(self) -> str:
        """Name of the object that defines the target.

        For a deployment repository, this is also the name of the cluster.
        """
        return self.key.name

    def get_package_path(self, package: str) -> str:
        """Return the path of a package's folder."""
        return f"{self.directory}/{package}" if self.directory else package

    def get_status_file_path(self, package: str) -> str:
        """Return the path of a package's status file."""
        return self.get_package_path(f"{STATUS_FOLDER}/{package}.yaml")


def format_draft_branch(template: str, target: Target, package: str) -> str:
    """Return the name of the draft branch of a package.

    The placeholder `{package}` becomes e.g. "team_app" for "team/app".
    """
    return template.format(repository=target.name, branch=target.branch, package=package.replace("/", "_"))


def are_paths_nested(path: str, other: str) -> bool:
    """Return whether two paths are equal, or one is inside the other. Every path is inside the path ""."""
    return path == other or not path or not other or path.startswith(other + "/") or other.startswith(path + "/")


def find_target_conflicts(targets: Iterable[Target], templates: Sequence[str]) -> Mapping[ObjectKey, Finding]:
    """Return a finding for each target that the reconciler must not write to.

    Two deployment repositories conflict if they have the same name, or equal or nested directories on one branch. Each
    target would change the packages of the other target. Two targets with the same draft branch would overwrite each
    other's drafts.

    Args:
        templates: Templates for the names of draft branches.
    """
    findings: dict[ObjectKey, Finding] = {}
    for target, other, reason in find_conflicting_targets(targets, templates):
        findings.setdefault(target.key, _create_conflict_finding(target, other, reason))
        findings.setdefault(other.key, _create_conflict_finding(other, target, reason))
    return findings


def find_conflicting_targets(
    targets: Iterable[Target], templates: Sequence[str]
) -> Iterator[tuple[Target, Target, str]]:
    """Yield each pair of conflicting targets with the reason. The second target is the subject of the reason."""
    ordered = sorted(targets, key=lambda target: target.key)
    for target, other in _iterate_pairs(ordered):
        if reason := _find_conflict(target, other, templates):
            yield target, other, reason


def _iterate_pairs(targets: list[Target]) -> Iterable[tuple[Target, Target]]:
    # Compare only targets with the same name or branch, because others cannot conflict, and a large fleet has too many
    # pairs.
    groups: dict[tuple[str, ...], list[Target]] = {}
    for target in targets:
        groups.setdefault((target.name,), []).append(target)
        groups.setdefault((target.repository_id, target.branch), []).append(target)
    for group in groups.values():
        yield from ((target, other) for index, target in enumerate(group) for other in group[index + 1 :])


def _find_conflict(target: Target, other: Target, templates: Iterable[str]) -> str:
    if target.name == other.name and target.is_deployment and other.is_deployment:
        return "has the same name, and the name identifies the cluster"
    is_one_branch = (target.repository_id, target.branch) == (other.repository_id, other.branch)
    if is_one_branch and are_paths_nested(target.directory, other.directory):
        return f"has an equal or nested directory on branch {target.branch}"
    # Compare draft branches only if both targets use one branch. Otherwise they differ, because every template contains
    # the repository name or the branch.
    names = (
        template
        for template in templates
        if format_draft_branch(template, target, "") == format_draft_branch(template, other, "")
    )
    if is_one_branch and (name := next(names, None)):
        return f"has the same draft branch, because the template {name} does not contain {{repository}}"
    return ""


def _format_full_name(target: Target) -> str:
    return f"{target.key.kind} {target.key.namespace}/{target.name}" if target.key.namespace else target.title


def _create_conflict_finding(target: Target, other: Target, reason: str) -> Finding:
    message = f"{_format_full_name(target)} cannot be written to: {_format_full_name(other)} {reason}"
    return ControllerCodes.DESTINATION_CONFLICT.finding(message, target.location)


class PackagePathIndex:
    """Package paths of one target.

    The index finds nested packages, which are not allowed, without comparing all paths.
    """

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self._packages: set[str] = set()
        self._below: dict[str, list[str]] = {}
        for package in packages:
            self.add(package)

    def add(self, package: str) -> None:
        """Add a package path."""
        if package not in self._packages:
            self._packages.add(package)
            for folder in list_folders_above(package):
                self._below.setdefault(folder, []).append(package)

    def find_nested(self, package: str) -> tuple[str, ...]:
        """Return the sorted packages that contain the package, or are inside the package."""
        above = (folder for folder in list_folders_above(package) if folder in self._packages)
        return tuple(sorted((*above, *self._below.get(package, ()))))


def list_folders_above(package: str) -> Iterator[str]:
    """Yield the parent folders of a package. The first one is "", which is the root."""
    segments = package.split("/") if package else []
    yield from ("/".join(segments[:count]) for count in range(len(segments)))


# Reserved first folders of branch names, each with a description for messages. For example, branches in `proposed/`
# contain copies of proposed drafts.
_RESERVED_FOLDERS = {"proposed": "proposed drafts", "reconciler": "states and status"}
_PLACEHOLDERS = {"{repository}": "[^/]+", "{branch}": ".+", "{package}": "[^/]+"}


@dataclass(frozen=True)
class ReservedBranches:
    """Branch names that the reconciler uses itself, so that no target may use them.

    Attributes:
        branch_templates: Templates for branch names, by the name of the setting, e.g. `drafts.branch`.
        branch_names: Complete branch names, by the name of the setting.
    """

    branch_templates: Mapping[str, str]
    branch_names: Mapping[str, str]

    def find_reserved_uses(self, targets: Iterable[Target]) -> Mapping[ObjectKey, str]:
        """Return the targets whose branch is reserved, each with the purpose of the reserved branch."""
        all_targets = tuple(targets)
        drafts = self._collect_draft_names(all_targets)
        return {
            target.key: use
            for target in all_targets
            if (
                use := self._describe_reserved_use(target.branch)
                or _find_use_by_others(target, drafts.get(target.repository_id, {}))
            )
        }

    def _describe_reserved_use(self, branch: str) -> str:
        # Ignore case, because some file systems store two branches that differ only in case in one file.
        folded = branch.casefold()
        for folder, use in _RESERVED_FOLDERS.items():
            if folded == folder or folded.startswith(f"{folder}/"):
                return f"branches below {folder}/ contain {use}"
        for setting, name in self.branch_names.items():
            if _are_nested(folded, name.casefold()):
                return f"{setting} is {name}"
        for setting, template in self.branch_templates.items():
            if _matches_template(folded, template.casefold()):
                return f"{setting} is {template}"
        return "HEAD is a reserved name in every Git repository" if branch == "HEAD" else ""

    def _collect_draft_names(self, targets: Iterable[Target]) -> Mapping[str, Mapping[str, str]]:
        uses: dict[str, dict[str, str]] = {}
        for target in targets:
            for setting, template in self.branch_templates.items():
                if "{package}" not in template:
                    name = format_draft_branch(template, target, "")
                    uses.setdefault(target.repository_id, {}).setdefault(
                        name, f"the setting `{setting}` uses this branch for {target.title}"
                    )
        return uses


def _matches_template(branch: str, template: str) -> bool:
    """Return whether a template can produce this branch name, or a name that cannot exist together with it in Git.

    The result is False for a template that starts with a placeholder, because it can produce almost any name.
    """
    start = template.partition("{")[0]
    if not start:
        return False
    parts = re.split(r"(\{[a-z]+\})", template)
    pattern = "".join(_PLACEHOLDERS.get(part, re.escape(part)) for part in parts)
    return bool(re.fullmatch(f"{pattern}(/.*)?", branch)) or start.startswith(f"{branch}/")


def _find_use_by_others(target: Target, drafts: Mapping[str, str]) -> str:
    names = [target.branch, *list_folders_above(target.branch)]
    return next((drafts[name] for name in names if name in drafts), "")


def _are_nested(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}/") or other.startswith(f"{name}/")
