"""Validation of the settings group `console`, and the rules that it describes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.bootstrap.console_authentication import SignInState, build_authenticator
from reconciler.bootstrap.console_reviews import build_console_reviews, build_role_rules
from reconciler.krm.selectors import parse_label_query
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.settings import Settings, SettingsError
from reconciler.settings.console import ConsoleSettings

OIDC: dict[str, Any] = {"auth": ["oidc"], "oidc": {"issuer": "https://id.example.com", "client_id": "console"}}


def role(**fields: Any) -> dict[str, Any]:
    return {"roles": [fields]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(role(role="owner", users=["a@b"]), "'viewer', 'reviewer' or 'admin'", id="role"),
        pytest.param(role(role="viewer"), "must contain `users` or `groups`", id="nobody"),
        pytest.param({"stages": [{"name": "a", "targets": "b in c"}]}, "must be a label requirement", id="stage-targets"),
        pytest.param({"stages": [{"name": "", "targets": "b"}]}, "at least 1 character", id="stage-without-name"),
        pytest.param(
            {"stages": [{"name": "a", "targets": "b"}, {"name": "a", "targets": "c"}]},
            'must contain each name once, but contains "a" several times', id="two-stages-with-one-name",
        ),
        pytest.param({"link_template": "https://{host}/{commit}"}, "must contain {file}", id="template-of-files"),
        pytest.param(
            {"commit_link_template": "https://{host}/{file}"}, "must not contain {file}", id="template-of-commits"
        ),
        pytest.param(
            role(role="reviewer", groups=["team-{tenant}"]), "must contain `{tenant}` in exactly one group",
            id="tenants-of-no-group",
        ),
        pytest.param(
            role(role="reviewer", groups=["team"], tenants=["{tenant}"]), "must contain `{tenant}` in exactly one group",
            id="one-group-for-all-tenants",
        ),
        pytest.param(
            role(role="reviewer", groups=["team-{tenant}"], users=["a@b"], tenants=["{tenant}"]), "and no users",
            id="users-of-all-tenants",
        ),
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
        pytest.param({"auth": ["password"]}, "'none', 'oidc', 'proxy' or 'tokens'", id="mode"),
        pytest.param({"auth": []}, "must contain at least one mode", id="no-mode"),
        pytest.param({"auth": ["none", "tokens"], "token_file": "f"}, "`none` must be the only mode", id="none-and-more"),
        pytest.param({"auth": ["tokens"]}, "must contain `token_file`, because `auth` contains `tokens`", id="no-file"),
        pytest.param({"auth": ["oidc"]}, "must contain `oidc.issuer`", id="no-issuer"),
        pytest.param(
            {"auth": ["oidc"], "oidc": {"issuer": "https://id.example.com"}}, "must contain `oidc.client_id`", id="no-client",
        ),
        pytest.param({"oidc": {"issuer": "http://id.example.com"}}, "must be a URL that starts with https://", id="no-tls"),
        pytest.param({"oidc": {"issuer": "https://id.example.com?a=b"}}, "starts with https://", id="issuer-with-query"),
        pytest.param({"oidc": {"issuer": "https://a:b@id.example.com"}}, "CredentialInUrl", id="password-in-the-issuer"),
        pytest.param({"oidc": {"scopes": ["email"]}}, "must contain openid", id="scopes"),
        pytest.param({"auth": ["proxy"]}, "must contain `proxy.secret_file`", id="no-secret"),
        pytest.param({"proxy": {"user_header": "X User"}}, "must be the name of a header", id="header"),
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
    console = {"roles": [{"role": "viewer", "groups": ["engineering"]}]}
    settings = Settings.model_validate({"console": console})

    reviews = build_console_reviews(settings, "config", lambda: None, lambda: 0.0)

    assert reviews.find_permissions(Reviewer("Ana", "ana@example.com")).role is None
    assert reviews.find_permissions(Reviewer("Ana", "", groups=frozenset({"engineering"}))).role == "viewer"


@pytest.mark.parametrize(
    ("console", "server", "message"),
    [
        pytest.param({}, {"listen": "0.0.0.0:8080"}, "console.auth: the mode none has no authentication", id="none"),
        pytest.param({"auth": ["proxy"], "proxy": {"secret_file": "f"}}, {}, "server.trusted_proxies: must", id="proxy"),
        pytest.param({"auth": ["tokens"], "token_file": "f"}, {}, "console.token_file: f: the token", id="token-file"),
        pytest.param(OIDC, {}, "server.external_url: must be the https://", id="no-url"),
        pytest.param(OIDC, {"external_url": "http://console.example.com"}, "https:// URL", id="url-without-tls"),
        pytest.param(
            OIDC, {"external_url": "http://127.0.0.1:80", "listen": "0.0.0.0:80"}, "https:// URL", id="url-of-this-machine",
        ),
        pytest.param(
            {**OIDC, "oidc": {**OIDC["oidc"], "client_secret_file": "f"}}, {"external_url": "https://a.example.com"},
            "console.oidc.client_secret_file: f: the secret file must be readable", id="client-secret",
        ),
        pytest.param(
            {"auth": ["proxy"], "proxy": {"secret_file": "f"}}, {"trusted_proxies": ["10.0.0.0/8"]},
            "console.proxy.secret_file: f: the secret file must be readable", id="secret-file",
        ),
    ],
)  # fmt: skip
def test_unsafe_settings_of_the_authentication(console: dict[str, Any], server: dict[str, Any], message: str) -> None:
    settings = Settings.model_validate({"console": console, "server": server})

    with pytest.raises(SettingsError, match=message):
        build_authenticator(settings, lambda _person: Permissions(()), SignInState())


def test_another_address_is_allowed_with_authentication(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("# none\n")
    console = {"auth": ["tokens"], "token_file": str(tmp_path / "tokens")}
    settings = Settings.model_validate({"console": console, "server": {"listen": "0.0.0.0:8080"}})

    assert build_authenticator(settings, lambda _person: Permissions(()), SignInState())


def test_a_missing_library_is_an_error_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("oidc", "id_tokens"):
        monkeypatch.delitem(sys.modules, f"reconciler.server.authentication.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    server = {"external_url": "https://console.example.com"}
    settings = Settings.model_validate({"console": OIDC, "server": server})

    with pytest.raises(
        SettingsError, match=r"console.auth: the mode oidc requires .* pip install 'reconciler\[oidc\]'"
    ):
        build_authenticator(settings, lambda _person: Permissions(()), SignInState())
