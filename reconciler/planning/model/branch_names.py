"""Names of draft branches, and the branch names that no target may use.

This module only fills in the placeholders. The template and its default are in `settings/drafts.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass
from reconciler.planning.model.targets import Target, list_folders_above


def format_draft_branch(template: str, target: Target, package: str) -> str:
    """Return the name of the draft branch of a package.

    The placeholder `{package}` becomes e.g. "team_app" for "team/app".
    """
    return template.format(repository=target.name, branch=target.branch, package=package.replace("/", "_"))


# Reserved first folders of branch names, each with a description for messages. For example, branches in `proposed/`
# contain copies of proposed drafts.
_RESERVED_FOLDERS = {"proposed": "proposed drafts", "reconciler": "states and status"}
_PLACEHOLDERS = {"{repository}": "[^/]+", "{branch}": ".+", "{package}": "[^/]+"}


@dataclass(frozen=True)
class ReservedBranches:
    """Branch names that the reconciler uses itself, so that no target may use them.

    Attributes:
        branch_templates: Maps the name of a setting, e.g. `drafts.branch`, to its template for branch names.
        branch_names: Maps the name of a setting to the complete branch name that it contains.
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
                return f'the setting `{setting}` is "{name}"'
        for setting, template in self.branch_templates.items():
            if _matches_template(folded, template.casefold()):
                return f'the setting `{setting}` is "{template}"'
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
    """Return whether a template for draft branches conflicts with a branch name.

    The template conflicts if it can produce the branch name, or a nested name: Git cannot store a branch `a/b` together
    with a branch `a`. The result is False for a template that starts with a placeholder, because such a template can
    produce almost any name.
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
