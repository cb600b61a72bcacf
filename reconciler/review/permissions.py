"""The permissions of people in the console: the drafts that a person may read and review.

All functions are pure. The server must call them for each request and for each draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from reconciler.krm.globs import matches_any_glob
from reconciler.krm.names import TENANT_PLACEHOLDER
from reconciler.krm.selectors import LabelSelector
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.fleet.risk import RISK_LEVELS, RiskLevel
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.review.people import Reviewer

Role = Literal["viewer", "reviewer", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "reviewer", "admin")
"""All roles. Each role includes the permissions of the roles before it."""
NOT_PERMITTED = "NotPermitted"
_TENANT_NAME = "([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)"


@dataclass(frozen=True)
class PackageScope:
    """The properties of a package that rules use.

    Attributes:
        labels: The labels of the target.
        package: The path of the package.
        tenant: The tenant that owns the package. "" if no tenant owns it.
    """

    labels: Mapping[str, str]
    package: str
    tenant: str = ""


@dataclass(frozen=True)
class RoleRule:
    """A rule that gives a role to people, for some packages.

    Attributes:
        users: Mail addresses, or stable IDs as `<subject>@<issuer>`.
        groups: The names of groups. A member of one of the groups has the role. If `tenants` contains `{tenant}`, the
            only group contains `{tenant}` too, and the rule applies once for each tenant.
        targets: The targets to which the rule applies.
        packages: Globs of package paths. If empty, the rule applies to all packages.
        tenants: The tenants whose packages the rule applies to. If empty, the rule applies to all packages.
        max_risk: The highest risk of a change that a reviewer may review.
        allows_removals: Whether a reviewer may approve the removal of a package.
    """

    role: Role
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    targets: LabelSelector = LabelSelector()
    packages: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    max_risk: RiskLevel = "high"
    allows_removals: bool = False

    def applies_to(self, person: Reviewer) -> bool:
        """Return whether the rule gives its role to a person. Letter case in mail addresses is not significant."""
        users = {user.casefold() for user in self.users}
        is_user = bool(person.email) and person.email.casefold() in users
        is_subject = bool(person.subject) and person.qualified_subject in self.users
        return is_user or is_subject or not person.groups.isdisjoint(self.groups)

    def list_for(self, person: Reviewer) -> Iterator[RoleRule]:
        """Yield the rules that a person has because of this rule. A rule for each tenant yields one for each group."""
        if TENANT_PLACEHOLDER in self.tenants:
            pattern = re.escape(self.groups[0]).replace(re.escape(TENANT_PLACEHOLDER), _TENANT_NAME)
            for group in sorted(person.groups):
                if match := re.fullmatch(pattern, group):
                    yield replace(self, groups=(group,), tenants=(match[1],))
        elif self.applies_to(person):
            yield self

    @property
    def covers_all_packages(self) -> bool:
        """Whether the rule applies to all packages of its targets."""
        return not self.packages and not self.tenants

    def covers(self, scope: PackageScope) -> bool:
        """Return whether the rule applies to a package."""
        return (
            self.targets.matches(scope.labels)
            and (not self.packages or matches_any_glob(scope.package, self.packages))
            and (not self.tenants or scope.tenant in self.tenants)
        )


@dataclass(frozen=True)
class Permissions:
    """The rules that apply to one person. Without rules, the person may do nothing."""

    rules: tuple[RoleRule, ...]

    @property
    def role(self) -> Role | None:
        """The highest role of the person. None if the person has no role."""
        return max((rule.role for rule in self.rules), key=ROLES.index, default=None)

    @property
    def is_admin(self) -> bool:
        """Whether the person may change the service, for example start a pass or retry a remote."""
        return self.role == "admin"

    @property
    def reads_everything(self) -> bool:
        """Whether the person may read all packages of all targets."""
        return any(rule.targets == LabelSelector() and rule.covers_all_packages for rule in self.rules)

    def can_read_target(self, labels: Mapping[str, str]) -> bool:
        """Return whether the person may read all packages of a target."""
        return any(rule.covers_all_packages and rule.targets.matches(labels) for rule in self.rules)

    def can_read_tenant(self, tenant: str) -> bool:
        """Return whether the person may read all packages of a tenant, and therefore also its part of the config."""
        rules = (rule for rule in self.rules if tenant in rule.tenants)
        return any(rule.targets == LabelSelector() and not rule.packages for rule in rules)

    def can_read(self, scope: PackageScope) -> bool:
        """Return whether the person may read a package."""
        return any(rule.covers(scope) for rule in self.rules)

    def find_refusal(self, scope: PackageScope, risk: RiskLevel, *, is_removal: bool = False) -> BlockingReason | None:
        """Return the reason why the person must not propose, approve, reject or restore a draft. None if allowed.

        Args:
            is_removal: Whether the action approves or proposes the removal of the package.
        """
        rules = [rule for rule in self.rules if rule.role != "viewer" and rule.covers(scope)]
        if not rules:
            return _refuse(f"you need the role reviewer for {scope.package} on this target")
        allowed = [rule for rule in rules if RISK_LEVELS.index(rule.max_risk) <= RISK_LEVELS.index(risk)]
        if not allowed:
            highest = min((rule.max_risk for rule in rules), key=RISK_LEVELS.index)
            return _refuse(f"the risk of the change is {risk}, and you may review changes up to the risk {highest}")
        if is_removal and not any(rule.allows_removals or rule.role == "admin" for rule in allowed):
            return _refuse("you may not review the removal of packages; a rule with `removals: true` allows it")
        return None


ADMIN_PERMISSIONS = Permissions((RoleRule("admin"),))
"""The permissions of the person of a console without authentication."""


def find_permissions(rules: Iterable[RoleRule], person: Reviewer) -> Permissions:
    """Return the permissions of a person."""
    return Permissions(tuple(found for rule in rules for found in rule.list_for(person)))


def _refuse(message: str) -> BlockingReason:
    return BlockingReason(NOT_PERMITTED, message)
