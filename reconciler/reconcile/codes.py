"""Finding codes of a pass, and the finding codes of all packages of the program."""

from __future__ import annotations

from reconciler.catalog.codes import CatalogCodes
from reconciler.cel.errors import CelCodes
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.package_variants.codes import VariantCodes
from reconciler.controllers.placement.codes import PlacementCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.krm.findings import CodeTable, CommonCodes, FindingScope, error, info, warning
from reconciler.packages.codes import PackageCodes
from reconciler.packages.source_codes import SourceCodes
from reconciler.planning.model.codes import PlanningCodes
from reconciler.tenancy.codes import TenancyCodes

PACKAGE = FindingScope.PACKAGE
TARGET = FindingScope.TARGET
CONFIG = FindingScope.CONFIG


class PassCodes(CodeTable):
    """Finding codes about remotes, forges, notifications, and the branches and tags that the daemon writes."""

    APPROVAL_FAILED = warning("The push of an approval by annotation failed. The next pass tries again.", TARGET)
    APPROVAL_HELD = warning(
        "An annotation approves a draft that has conflicts. The draft waits until a person accepts the conflicts.",
        PACKAGE,
    )
    APPROVAL_REFUSED = warning(
        "An annotation approves a draft, but the Git host refused the push. Merge the draft, or allow the push.", TARGET
    )
    ENGINE_TOO_OLD = error("A newer version of the reconciler wrote the state. The target is not changed.", TARGET)
    NOTIFICATION_TEMPLATE_FAILED = warning(
        "A template of notifications cannot be rendered. The default text is sent instead.", CONFIG
    )
    NOTIFICATION_URL_REFUSED = warning(
        "The URL of a notification channel belongs to a service that does not exist any more. No message is sent.",
        CONFIG,
    )
    PROPOSAL_BRANCH_TAKEN = warning(
        "The branch of the config proposal cannot be created, because its name conflicts with the name of "
        "another branch.",
        CONFIG,
    )
    PROPOSAL_FAILED = warning("The push of a config proposal failed. The next pass tries again.", CONFIG)
    PROPOSAL_LOST = info(
        "Another writer moved the branch of the config proposal first. The next pass creates the proposal again.",
        CONFIG,
    )
    PROPOSAL_POSTPONED = info(
        "A config proposal waits for the rate limit of its remote. A later pass pushes the proposal.", CONFIG
    )
    PROPOSAL_REFUSED = warning("The host of the config repository refused the push of a config proposal.", CONFIG)
    PULL_REQUESTS_UNREACHABLE = warning(
        "The pull requests of a repository cannot be read at the moment. Drafts are still pushed.", TARGET
    )
    PULL_REQUESTS_WAIT = info(
        "Drafts wait for their pull requests, because of a rate limit or the limit of open pull requests.", TARGET
    )
    PULL_REQUEST_REFUSED = warning(
        "The forge refused a pull request. The draft has no pull request until a later pass succeeds.", TARGET
    )
    PUSH_FAILED = error("The push of drafts failed. The next pass tries again.", TARGET)
    PUSH_POSTPONED = info(
        "Drafts wait for the rate limit of a remote, or for a push that is still running. A later pass "
        "pushes the drafts.",
        TARGET,
    )
    PUSH_REFUSED = error("The host refused the push of drafts.", TARGET)
    REPOSITORY_UNREACHABLE = error("A repository cannot be read at the moment.", TARGET)
    REVISION_TAG_FAILED = warning(
        "The push of a tag for a published revision failed. The next pass tries again.", TARGET
    )
    REVISION_TAG_REFUSED = warning(
        "The host refused a tag for a published revision. All other work continues, and a later pass tries again.",
        TARGET,
    )
    REVISION_TAG_TAKEN = warning(
        "The tag name of a published revision already exists on another commit. The tag is not changed.", TARGET
    )
    SETTING_DEPRECATED = warning(
        "A setting is deprecated. A later release removes it. Only `validate` and `doctor` report this code.",
        CONFIG,
    )
    STATE_UNREADABLE = error("The state of a target is not valid. The target is not changed.", TARGET)
    STATUS_BRANCH_UNUSABLE = error(
        "The status branch contains files that a pass did not write. Passes push drafts, but do not write the status.",
        CONFIG,
    )
    TARGET_READ_ONLY = error(
        "The entry of `git.credentials` for the repository of a target has no credentials for pushes. The target is not"
        " changed.",
        TARGET,
    )
    TARGET_UNREADABLE = error(
        "The drafts of a target cannot be read. Only commands for reviewers report this code.", TARGET
    )
    URL_REFUSED = error("A URL is not valid, or not allowed.", TARGET)


CODE_TABLES: tuple[type[CodeTable], ...] = (
    CommonCodes, CelCodes, CatalogCodes, PackageCodes, SourceCodes, ControllerCodes, VariantCodes, PolicyCodes,
    PlacementCodes, PluginCodes, ComponentCodes, TemplateCodes, PlanningCodes, TenancyCodes, PassCodes,
)  # fmt: skip
ALL_CODES = tuple(code for table in CODE_TABLES for code in table.by_name.values())
"""All finding codes of the program."""
