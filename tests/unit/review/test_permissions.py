"""Tables of the permissions of people: which rules apply, and which drafts a person may read and review."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.output.fleet.risk import RiskLevel
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS, PackageScope, Permissions, RoleRule, find_permissions

NORTH = LabelSelector((("region", "north"),))
SCOPE = PackageScope({"region": "north"}, "payments/api", "payments")
PLAIN = RoleRule("reviewer")


@pytest.mark.parametrize(
    ("person", "roles"),
    [
        pytest.param(Reviewer("Ana", "ana@example.com"), ["admin"], id="mail-address"),
        pytest.param(Reviewer("Ana", "ANA@Example.com"), ["admin"], id="letter-case-of-a-mail-address"),
        pytest.param(Reviewer("Ana", "", "a1", "https://id.example.com"), ["reviewer"], id="subject-and-issuer"),
        pytest.param(Reviewer("Ana", "", "a1", "https://other.example.com"), [], id="subject-of-another-issuer"),
        pytest.param(Reviewer("Ana", "", "ana@example.com", "https://x"), [], id="subject-like-a-mail-address"),
        pytest.param(Reviewer("Ana", "x@example.com", groups=frozenset({"sre", "dev"})), ["viewer"], id="group"),
        pytest.param(Reviewer("ana@example.com", ""), [], id="the-name-has-no-effect"),
        pytest.param(Reviewer("", ""), [], id="no-identity"),
    ],
)
def test_the_rules_of_a_person(person: Reviewer, roles: list[str]) -> None:
    rules = (
        RoleRule("admin", users=("ana@example.com",)),
        RoleRule("reviewer", users=("a1@https://id.example.com",)),
        RoleRule("viewer", groups=("sre",)),
    )

    assert [rule.role for rule in find_permissions(rules, person).rules] == roles


@pytest.mark.parametrize(
    ("groups", "tenants"),
    [
        pytest.param({"team-payments", "dev"}, ["payments"], id="one-team"),
        pytest.param({"team-payments", "team-shop.eu-1"}, ["payments", "shop.eu-1"], id="several-teams"),
        pytest.param({"team-", "xteam-shop", "team-shop/x", "team-Shop", "team-shop\n"}, [], id="other-groups"),
        # The name of the group is not a regular expression.
        pytest.param({"teamXshop", "payments"}, [], id="parts-of-the-name"),
    ],
)
def test_a_rule_for_each_tenant(groups: set[str], tenants: list[str]) -> None:
    rule = RoleRule("reviewer", groups=("team-{tenant}",), tenants=("{tenant}",), max_risk="medium")
    permissions = find_permissions([rule], Reviewer("Ana", "ana@example.com", groups=frozenset(groups)))

    assert [found.tenants for found in permissions.rules] == [(name,) for name in tenants]
    assert permissions.can_read(SCOPE) == ("payments" in tenants)
    assert not permissions.can_read(PackageScope(SCOPE.labels, SCOPE.package, ""))
    assert not permissions.can_read_target(SCOPE.labels)
    assert (permissions.find_refusal(SCOPE, "medium") is None) == ("payments" in tenants)
    assert permissions.find_refusal(SCOPE, "high") is not None


@pytest.mark.parametrize(
    ("rules", "risk", "is_removal", "message"),
    [
        pytest.param((), "low", False, "you need the role reviewer", id="no-role"),
        pytest.param((RoleRule("viewer"),), "low", False, "you need the role reviewer", id="viewer"),
        pytest.param((PLAIN,), "high", False, "", id="reviewer"),
        pytest.param((RoleRule("reviewer", targets=NORTH),), "low", False, "", id="matching-target"),
        pytest.param(
            (RoleRule("reviewer", targets=LabelSelector((("region", "south"),))),), "low", False,
            "you need the role reviewer", id="other-target",
        ),
        pytest.param((RoleRule("reviewer", packages=("payments/**",)),), "low", False, "", id="matching-package"),
        pytest.param((RoleRule("reviewer", packages=("payments",)),), "low", False, "you need the", id="other-package"),
        pytest.param((RoleRule("reviewer", tenants=("payments",)),), "low", False, "", id="matching-tenant"),
        pytest.param((RoleRule("reviewer", tenants=("shop",)),), "low", False, "you need the", id="other-tenant"),
        pytest.param((RoleRule("reviewer", max_risk="medium"),), "low", False, "", id="lower-risk"),
        pytest.param((RoleRule("reviewer", max_risk="medium"),), "medium", False, "", id="equal-risk"),
        pytest.param(
            (RoleRule("reviewer", max_risk="low"), RoleRule("reviewer", max_risk="medium")), "high", False,
            "the risk of the change is high, and you may review changes up to the risk medium", id="higher-risk",
        ),
        pytest.param((PLAIN,), "high", True, "you may not review the removal", id="removal"),
        pytest.param((RoleRule("reviewer", allows_removals=True),), "high", True, "", id="permitted-removal"),
        pytest.param(
            # The two rules do not combine to the permission for a removal with a high risk.
            (RoleRule("reviewer", max_risk="low", allows_removals=True), PLAIN), "high", True,
            "you may not review the removal", id="removal-in-a-rule-with-a-lower-risk",
        ),
        pytest.param(
            (RoleRule("reviewer", packages=("shop/**",), allows_removals=True), PLAIN), "high", True,
            "you may not review the removal", id="removal-in-a-rule-for-other-packages",
        ),
        pytest.param((RoleRule("admin"),), "high", True, "", id="admin"),
    ],
)  # fmt: skip
def test_the_drafts_that_a_person_may_review(
    rules: tuple[RoleRule, ...], risk: RiskLevel, is_removal: bool, message: str
) -> None:
    refusal = Permissions(rules).find_refusal(SCOPE, risk, is_removal=is_removal)

    assert (refusal is None) == (not message)
    if refusal:
        assert refusal.reason == "NotPermitted"
        assert refusal.message.startswith(message)


@pytest.mark.parametrize(
    ("limits", "reads_package", "reads_target", "reads_everything"),
    [
        pytest.param({}, True, True, True, id="no-limit"),
        pytest.param({"targets": NORTH}, True, True, False, id="targets"),
        pytest.param({"packages": ("payments/*",)}, True, False, False, id="packages"),
        pytest.param({"tenants": ("payments",)}, True, False, False, id="tenants"),
        pytest.param({"tenants": ("shop",)}, False, False, False, id="other-tenant"),
        pytest.param({"max_risk": "low"}, True, True, True, id="the-risk-has-no-effect"),
    ],
)
def test_the_packages_that_a_person_may_read(
    limits: dict[str, Any], reads_package: bool, reads_target: bool, reads_everything: bool
) -> None:
    permissions = Permissions((RoleRule("reviewer", **limits),))

    assert permissions.can_read(SCOPE) == reads_package
    assert permissions.can_read_target(SCOPE.labels) == reads_target
    assert permissions.reads_everything == reads_everything


@pytest.mark.parametrize(
    ("roles", "highest"),
    [
        pytest.param([], None, id="no-role"),
        pytest.param(["viewer"], "viewer", id="viewer"),
        pytest.param(["viewer", "reviewer", "viewer"], "reviewer", id="reviewer"),
        pytest.param(["admin", "reviewer"], "admin", id="admin"),
    ],
)
def test_the_highest_role(roles: list[Any], highest: str | None) -> None:
    permissions = Permissions(tuple(RoleRule(role) for role in roles))

    assert permissions.role == highest
    assert permissions.is_admin == (highest == "admin")


def test_the_person_of_a_console_without_authentication_may_do_everything() -> None:
    assert ADMIN_PERMISSIONS.reads_everything
    assert ADMIN_PERMISSIONS.find_refusal(SCOPE, "high", is_removal=True) is None
