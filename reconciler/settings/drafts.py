"""Settings of drafts, their approval and review, and the deletion of packages."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator, model_validator

from reconciler.krm.names import validate_ref_name
from reconciler.settings.declaration import SettingsGroup, declare

DRAFT_PLACEHOLDERS = ("{repository}", "{branch}", "{package}")


class DraftSettings(SettingsGroup):
    """Names of draft branches."""

    branch: str = declare(
        "drafts/{repository}",
        "The name of draft branches. The name can contain the placeholders {repository}, {branch} and "
        "{package}. If the name contains {package}, each package has its own draft branch. GitOps Promoter "
        "requires {branch}-next.",
    )
    removals_branch: str = declare(
        "removals/{repository}",
        "The name of the branches of removal drafts, which delete published packages. The name can contain "
        "the placeholders of `drafts.branch`. Neither of the two names can be a folder that contains the "
        "other name.",
    )
    config_branch: str = declare(
        "drafts/config",
        "The branch of the config repository on which the reconciler proposes newer revisions for package variants "
        "with `tagMode: rewrite`.",
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
                "`branch` and `removals_branch` must not be equal, and neither name can be a folder that "
                "contains the other name"
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
            raise ValueError("must contain {repository} or {branch}, because otherwise all clusters share one draft")
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
        "The date of the commits that the commands `approve` and `reject` create. `real`: the time of the command, or "
        "the date of a parent commit if that date is later. `commits`: the latest date of the parent commits, so that "
        "the commit ID does not depend on the time of the command. The revision tag has the date of its commit.",
    )
    require_other_person: bool = declare(
        False,
        "Whether `approve` and the console refuse an approval by the author of the config commit, or of a commit on "
        "the draft branch. Authors are compared by their mail addresses. The option --author and merges with Git or on "
        "a forge are not checked.",
    )
    approvals: int = declare(
        1,
        "The number of people who must approve a draft before `approve` or the console publishes it. People have "
        "different mail addresses. An approval is void after the draft has changed. Approvals by annotation, and "
        "merges with Git or on a forge, are not checked.",
        ge=1,
        le=20,
    )


class GuardSettings(SettingsGroup):
    """Limits for deletions. If a pass would delete more, a person must acknowledge the deletion."""

    max_delete_percent: int = declare(
        30,
        "The largest part of the packages that one pass can delete without a confirmation, in percent. This limit "
        "applies to the packages of each set and to the published packages of each target.",
        ge=0,
        le=100,
    )
    hold_kinds: list[str] = declare(
        ["CustomResourceDefinition", "Namespace", "PersistentVolumeClaim"],
        "The kinds of resources that no chart update deletes without a confirmation. If a new chart version does not "
        "contain such a resource any more, the resource stays in the package until a person confirms the deletion. A"
        " kind can have an API group, for example "
        "Cluster.postgresql.cnpg.io.",
    )
