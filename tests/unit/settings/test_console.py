"""Validation of the settings group `console`, and the rules that it describes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.bootstrap.console_reviews import build_console_reviews, build_role_rules
from reconciler.krm.selectors import parse_label_query
from reconciler.review.people import Reviewer
from reconciler.review.permissions import RoleRule
from reconciler.settings import Settings
from reconciler.settings.console import ConsoleSettings


def role(**fields: Any) -> dict[str, Any]:
    return {"roles": [fields]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(role(role="owner", users=["a@b"]), "'viewer', 'reviewer' or 'admin'", id="role"),
        pytest.param(role(role="viewer"), "must contain `users` or `groups`", id="nobody"),
        pytest.param(role(role="viewer", groups=[]), "must contain `users` or `groups`", id="no-groups"),
        pytest.param(role(role="reviewer", groups=["a"], targets="a in b"), "must be a label requirement", id="targets"),
        pytest.param(
            role(role="viewer", groups=["a"], max_risk="low", removals=True),
            "must not contain `max_risk`, `removals`: a rule of the role viewer has only the limits `targets`",
            id="limit-of-a-viewer",
        ),
        pytest.param(
            role(role="admin", groups=["a"], targets="stage=prod"),
            "must not contain `targets`: a rule of the role admin has no limits", id="limit-of-an-admin",
        ),
        pytest.param(role(role="reviewer", groups=["a"], max_risk="none"), "'low', 'medium' or 'high'", id="risk"),
        pytest.param(role(role="reviewer", groups=["a"], targtes="a=b"), "Extra inputs", id="unknown-field"),
        pytest.param({"confirm_above": -1}, "greater than or equal to 0", id="confirm-above"),
    ],
)  # fmt: skip
def test_invalid_settings(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ConsoleSettings.model_validate(data)


def test_the_rules_of_roles() -> None:
    roles = [
        {"role": "viewer", "groups": ["engineering"]},
        {
            "role": "reviewer", "groups": ["sre"], "targets": "payments=true", "packages": ["payments/**"],
            "tenants": ["payments"], "max_risk": "medium", "removals": True,
        },
        {"role": "admin", "users": ["ana@example.com"]},
    ]  # fmt: skip

    assert build_role_rules(Settings.model_validate({"console": {"roles": roles}})) == (
        RoleRule("viewer", groups=("engineering",)),
        RoleRule(
            "reviewer", groups=("sre",), targets=parse_label_query("payments=true"), packages=("payments/**",),
            tenants=("payments",), max_risk="medium", allows_removals=True,
        ),
        RoleRule("admin", users=("ana@example.com",)),
    )  # fmt: skip


def test_a_person_without_a_rule_has_no_role() -> None:
    console = {"roles": [{"role": "viewer", "groups": ["engineering"]}], "contact": "platform@example.com"}
    settings = Settings.model_validate({"console": console})

    reviews = build_console_reviews(settings, "config", lambda: None, lambda: 0.0)

    assert reviews.find_permissions(Reviewer("Ana", "ana@example.com")).role is None
    assert reviews.find_permissions(Reviewer("Ana", "", groups=frozenset({"engineering"}))).role == "viewer"
    assert reviews.contact == "platform@example.com"
