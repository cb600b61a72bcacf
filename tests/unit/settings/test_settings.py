"""Tests of settings from the file and the environment. All errors are reported together."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from reconciler.cel import ExpressionLimits
from reconciler.krm.names import validate_ref_name
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, parse_yaml
from reconciler.settings import Settings, SettingsError, build_schema_text, load_settings
from reconciler.settings.deprecations import list_deprecated_settings

CONFIG = Path(__file__).resolve().parents[3] / "config"
EVERY_SETTING = CONFIG / "reconciler.yaml"
SCHEMA = CONFIG / "schema.json"
DEVIATIONS = "D1, D3, D4, D5, D6, D7, D8, D9, D10, D11, D12, D13, D14, D15, D16, D17, D18, D19, D22"
MERGE_KEYS = "conflict_policy, deviations, list_keys, profile"
AUTHOR = '"reconciler <reconciler@localhost>"'
APART = (
    "`branch` and `removals_branch` must not be equal, and neither name can be a folder that contains the other name"
)
ADDRESS = 'must be host:port, for example "127.0.0.1:8080" or "[::]:8080"; port 0 selects any free port'
SECRET = "must contain `secret_file` if `listen` is set, because the server accepts only signed webhooks"
CREDENTIAL_IN_URL = (
    "must not contain a user name, password or token (removed here): put them into a file, and name the file in the"
    " settings, for example in `git.credentials` (CredentialInUrl)"
)
SHARD = (
    "must be i/n, which means shard i of n shards, with 1 <= i <= n <= 1,000, for example 2/5; 1/1 means all targets"
)
TOP = (
    "approvals, cache, config, console, drafts, fleet, forge, functions, git, guards, health, limits, log, max_backoff_seconds, "
    "merge, metrics, notifications, poll_jitter_percent, poll_seconds, rendering, review, rules, server, shard, signing, "
    "sources, state_ref, status, tenancy, tracing, webhooks"
)


def load(tmp_path: Path, text: str, **environment: str) -> Settings:
    (tmp_path / "reconciler.yaml").write_text(text)
    return load_settings(None, environment, tmp_path)


def list_errors(tmp_path: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(SettingsError) as error:
        load(tmp_path, text, **environment)
    return str(error.value).replace(f"{tmp_path}/", "").splitlines()


def get_setting(settings: Settings, path: str) -> Any:
    value: Any = settings
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        pytest.param("", "poll_seconds", 60.0, id="an-empty-file-has-the-defaults"),
        pytest.param(
            "# all of it is a comment\n", "git.timeout_seconds", 120, id="a-file-of-comments-has-the-defaults"
        ),
        pytest.param(
            "git:\n  # timeout_seconds: 5\n", "git.timeout_seconds", 120, id="a-group-of-comments-has-the-defaults"
        ),
        pytest.param(
            "git: {timeout_seconds: }\n", "git.timeout_seconds", 120, id="a-setting-without-a-value-has-the-default"
        ),
        pytest.param("git: {timeout_seconds: 5}\n", "git.timeout_seconds", 5, id="a-setting-of-a-group"),
        pytest.param("poll_seconds: 5\n", "poll_seconds", 5.0, id="a-whole-number-of-seconds"),
        pytest.param("limits: {cel: {steps: 9}}\n", "limits.cel.steps", 9, id="a-group-in-a-group"),
        pytest.param("git: {allowed_urls: [a, b]}\n", "git.allowed_urls", ("a", "b"), id="a-list"),
        pytest.param(
            "state_ref: refs/heads/reconciler/state/{repository}\n",
            "state_ref",
            "refs/heads/reconciler/state/{repository}",
            id="state-in-branches",
        ),
        pytest.param("shard: 2/5\n", "shard", "2/5", id="a-shard"),
        pytest.param("drafts: {branch: '{branch}-next'}\n", "drafts.branch", "{branch}-next", id="a-draft-name"),
        pytest.param("functions: {exec: [/a/*]}\n", "functions.exec", ("/a/*",), id="programs"),
        pytest.param(
            "webhooks: {listen: '[::1]:8080', secret_file: s}\n", "webhooks.listen", "[::1]:8080", id="an-address"
        ),
    ],
)
def test_settings_from_a_file(tmp_path: Path, text: str, path: str, expected: Any) -> None:
    assert get_setting(load(tmp_path, text), path) == expected


@pytest.mark.parametrize(
    ("variables", "path", "expected"),
    [
        pytest.param({"KRM_FN_RUNTIME": "podman"}, "functions.engine", "podman", id="variable-of-kpt"),
        pytest.param({"KRM_FN_RUNTIME": ""}, "functions.engine", "", id="empty-variable-of-kpt"),
        pytest.param({"KPT_IMAGE_PREFIX": "a.b/c"}, "functions.image_prefix", "a.b/c", id="image-prefix-of-kpt"),
        pytest.param(
            {"KRM_FN_RUNTIME": "podman", "RECONCILER_FUNCTIONS__ENGINE": "docker"},
            "functions.engine",
            "docker",
            id="setting-variable-overrides-variable-of-kpt",
        ),
        pytest.param({"RECONCILER_POLL_SECONDS": "2.5"}, "poll_seconds", 2.5, id="a-single-setting"),
        pytest.param({"RECONCILER_APPROVALS__BY_ANNOTATION": "true"}, "approvals.by_annotation", True, id="a-switch"),
        pytest.param({"RECONCILER_GIT__TIMEOUT_SECONDS": "7"}, "git.timeout_seconds", 7, id="a-setting-of-a-group"),
        pytest.param({"RECONCILER_LIMITS__CEL__STEPS": "7"}, "limits.cel.steps", 7, id="a-group-in-a-group"),
        pytest.param({"RECONCILER_GIT__ALLOWED_URLS": "[a, b]"}, "git.allowed_urls", ("a", "b"), id="a-list"),
        pytest.param({"RECONCILER_CONFIG__BRANCH": "1.10"}, "config.branch", "1.10", id="a-text-like-a-number"),
        pytest.param({"RECONCILER_SHARD": "2/5"}, "shard", "2/5", id="a-shard"),
        pytest.param({"RECONCILER_CACHE": "~"}, "cache", "~", id="a-text-like-null"),
        pytest.param({"RECONCILER_CACHE": "[a"}, "cache", "[a", id="a-text-that-is-not-yaml"),
        pytest.param({"RECONCILER_LOG__LEVEL": "debug"}, "log.level", "debug", id="a-choice"),
        pytest.param({"RECONCILER_FLEET__URL": ""}, "fleet.url", "", id="an-empty-text"),
        pytest.param(
            {"RECONCILER_PORT": "tcp://10.0.0.1:80"}, "poll_seconds", 30.0, id="variable-of-a-kubernetes-service"
        ),
        pytest.param({"POLL_SECONDS": "1"}, "poll_seconds", 30.0, id="variable-without-the-prefix"),
    ],
)
def test_environment_overrides_the_file(tmp_path: Path, variables: dict[str, str], path: str, expected: Any) -> None:
    file = "poll_seconds: 30\nfleet: {url: x}\ngit: {max_refs_per_push: 9}\n"

    settings = load(tmp_path, file, **variables)

    assert get_setting(settings, path) == expected
    assert settings.git.max_refs_per_push == 9


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        pytest.param("poll_second: 1\n", [f"1: poll_second: unknown setting; allowed settings: {TOP}"], id="unknown"),
        pytest.param(
            "limits:\n  cel:\n    depth: 1\n",
            ["3: limits.cel.depth: unknown setting; allowed settings: bytes, characters, nesting, steps"],
            id="unknown-in-a-group",
        ),
        pytest.param(
            "merge:\n- x\n",
            [f'1: merge: must be a mapping of settings ({MERGE_KEYS}), but is ["x"]'],
            id="list-as-a-group",
        ),
        pytest.param("shard: 6/5\n", [f'1: shard: {SHARD}; the value is "6/5"'], id="invalid-shard"),
        pytest.param("cache: 1\n", ["1: cache: must be a text, but is 1"], id="number-as-a-text"),
        pytest.param(
            "forge: {hosts: [{url: 'https://git.example.com'}]}\n",
            ["1: forge.hosts.0.kind: the setting is required, but it is missing"],
            id="missing-setting",
        ),
        pytest.param(
            "forge: {hosts: [{url: /, kind: agit}]}\n",
            [
                '1: forge.hosts.0.url: must be a URL without credentials, for example https://github.com/acme; the value is "/"'
            ],
            id="forge-without-a-folder",
        ),
        pytest.param(
            "webhooks:\n  listen: '8080'\n  secret_file: s\n",
            [f'2: webhooks.listen: {ADDRESS}; the value is "8080"'],
            id="port-without-a-host",
        ),
        pytest.param(
            "webhooks:\n  listen: ':8080'\n",
            [f'2: webhooks.listen: {ADDRESS}; the value is ":8080"'],
            id="an-address-without-a-host",
        ),
        pytest.param(
            "server:\n  listen: a\n",
            [f'2: server.listen: {ADDRESS}; the value is "a"'],
            id="server-address",
        ),
        pytest.param(
            "server:\n  trusted_proxies: [10.0.0.1/8]\n",
            [
                (
                    '2: server.trusted_proxies: must contain networks in CIDR notation, for example 10.0.0.0/8; the value is ["10.0.0.1/8"]'
                )
            ],
            id="proxy-that-is-no-network",
        ),
        pytest.param(
            "server:\n  tls:\n    cert_file: a\n",
            [
                (
                    '2: server.tls: must contain both `cert_file` and `key_file`, or neither of them; the value is {"cert_file":"a"}'
                )
            ],
            id="certificate-without-a-key",
        ),
        pytest.param(
            "server:\n  external_url: reconciler.example.com\n",
            [
                (
                    '2: server.external_url: must be a URL that starts with http:// or https://; the value is "reconciler.example.com"'
                )
            ],
            id="url-without-a-scheme",
        ),
        pytest.param(
            "git:\n  remotes:\n    - url: git@github.com:acme\n      max_pushes_per_minute: 6\n",
            [
                (
                    '3: git.remotes.0.url: must be a host, or a host and a path or glob, for example github.com/acme/*; the value is "git@github.com:acme"'
                )
            ],
            id="scp-style-url-of-a-remote",
        ),
        pytest.param(
            "git:\n  remotes:\n    - {url: github.com, max_pushes: 6}\n",
            [
                (
                    "3: git.remotes.0.max_pushes: unknown setting; allowed settings: "
                    "max_pushes_per_minute, max_refs_per_push, url"
                )
            ],
            id="an-unknown-limit",
        ),
        pytest.param(
            "git: {remotes: [{url: github.com}]}\n",
            [
                (
                    '1: git.remotes.0: must contain a limit: `max_refs_per_push` or `max_pushes_per_minute`; the value is {"url":"github.com"}'
                )
            ],
            id="a-remote-without-a-limit",
        ),
        pytest.param(
            "webhooks:\n  listen: 127.0.0.1:8080\n",
            [f'1: webhooks: {SECRET}; the value is {{"listen":"127.0.0.1:8080"}}'],
            id="webhooks-without-a-secret",
        ),
        pytest.param(
            "forge:\n  hosts:\n    - {url: https://github.com, kind: github, tokenfile: x}\n",
            [
                (
                    "3: forge.hosts.0.tokenfile: unknown setting; allowed settings: api, app_id, app_installation, "
                    "app_key_file, kind, token_file, url"
                )
            ],
            id="unknown-in-an-item",
        ),
        pytest.param(
            "forge:\n  hosts:\n    - url: https://me:secret@github.com\n      kind: github\n      token_file: x\n",
            [(f'3: forge.hosts.0.url: {CREDENTIAL_IN_URL}; the value is "https://github.com"')],
            id="credentials-in-an-address",
        ),
        pytest.param(
            "git:\n  credentials:\n    - url: https://me:canary@git.example.com\n      read: {token_file: t}\n",
            [(f'3: git.credentials.0.url: {CREDENTIAL_IN_URL}; the value is "https://git.example.com"')],
            id="credentials-in-a-pattern",
        ),
        pytest.param(
            "git:\n  credentials:\n    - url: h\n      write:\n        token_file: t\n        url: https://me:ca@h/\n",
            [(f'6: git.credentials.0.write.url: {CREDENTIAL_IN_URL}; the value is "https://h/"')],
            id="credentials-in-a-push-url",
        ),
        pytest.param(
            "git:\n  credentials:\n    - {url: h, read: {token: t}}\n",
            [
                (
                    "3: git.credentials.0.read.token: unknown setting; allowed settings: credentials_file, github_app, "
                    "known_hosts_file, ssh_key_file, token_file, username"
                )
            ],
            id="unknown-credentials",
        ),
        pytest.param(
            "git:\n  credentials:\n    - {url: h}\n    - {url: h, read: {username: u}}\n"
            "    - {url: '*', write: {token_file: t, url: 'https://h/'}}\n"
            "    - {url: h, read: {token_file: t, credentials_file: c}}\n"
            "    - {url: h, api: {}}\n"
            "    - {url: h, read: {token_file: t, known_hosts_file: k}}\n",
            [
                '3: git.credentials.0: must contain `read`, `write` or `api`; the value is {"url":"h"}',
                (
                    '4: git.credentials.1.read: must contain `token_file`, `credentials_file`, `github_app` or `ssh_key_file`; the value is {"username":"u"}'
                ),
                (
                    '5: git.credentials.2: must contain a host without * and ?, because `write.url` replaces the host; the value is {"url":"*","write":{"token_file":"t","url":"https://h/"}}'
                ),
                (
                    '6: git.credentials.3.read: must contain only one of `token_file`, `credentials_file` and `github_app`; the value is {"token_file":"t","credentials_file":"c"}'
                ),
                "7: git.credentials.4.api: must contain either `token_file` or `github_app`; the value is {}",
                (
                    '8: git.credentials.5.read: must contain `known_hosts_file` only together with `ssh_key_file`; the value is {"token_file":"t","known_hosts_file":"k"}'
                ),
            ],
            id="contradictory-credentials",
        ),
        pytest.param(
            "forge: {hosts: [{url: https://github.com, kind: github}]}\n",
            [
                (
                    '1: forge.hosts.0: must have credentials; add an entry to `git.credentials` that matches "https://github.com". Its field `api` must have `token_file`, or on GitHub `github_app`'
                )
            ],
            id="a-forge-without-credentials",
        ),
        pytest.param(
            "forge: {hosts: [{url: https://a.example, kind: gitea, api: http://a.example/api/v1, token_file: x}]}\n",
            [
                (
                    '1: forge.hosts.0.api: must be an https URL without credentials, for example https://git.example.com/api/v1; the value is "http://a.example/api/v1"'
                )
            ],
            id="api-without-tls",
        ),
        pytest.param(
            "forge: {labels: [fleet, accept-conflicts]}\n",
            [
                (
                    '1: forge.labels: must not contain accept-conflicts: reviewers set this label to accept conflicts; the value is ["fleet","accept-conflicts"]'
                )
            ],
            id="a-label-of-reviewers",
        ),
        pytest.param(
            "forge: {labels: ['a, b']}\n",
            ['1: forge.labels: must be names of labels, without commas; the value is ["a, b"]'],
            id="label-with-a-comma",
        ),
        pytest.param(
            "rules: {strict: [PolicyNoEffects]}\n",
            [
                (
                    "1: rules.strict: must contain only warnings of override policies and templates: ContainerNotFound, "
                    "DigestPinned, EnvNameReserved, EnvWithoutValue, ForbiddenMountPath, IgnoredLabel, "
                    "LiteralSecretSuspected, MountWithoutVolume, NullTemplateProperty, OperatorLabelReplaced, "
                    "OrphanPool, OverridePolicyLabelIgnored, PatchDroppedKeys, PolicyNoEffect, PoolWithoutCluster, "
                    "ReplaceCreatedMember, ReservedAnnotation, ReservedLabel, RuleTextUnreadable, "
                    'SecurityContextReplaced, ShadowedTemplateFields, TemplateVersionUnknown, UnknownTemplateProperty; the value is ["PolicyNoEffects"]'
                )
            ],
            id="unknown-warning",
        ),
        pytest.param(
            "rules: {plugin_outputs: [values, chart]}\n",
            ["1: rules.plugin_outputs.1: must be 'values' or 'helmrelease', but is \"chart\""],
            id="unknown-plugin-output",
        ),
        pytest.param(
            "rules: {pod_spec_paths: {a/b/CloneSet: /spec}}\n",
            [
                (
                    '1: rules.pod_spec_paths: must have keys of the form group/Kind, for example apps.example/CloneSet; the value is {"a/b/CloneSet":"/spec"}'
                )
            ],
            id="invalid-kind",
        ),
        pytest.param(
            "rules: {pod_spec_paths: {CloneSet: spec}}\n",
            [
                (
                    '1: rules.pod_spec_paths: must have JSON pointers as values, for example /spec/template/spec; the value is {"CloneSet":"spec"}'
                )
            ],
            id="invalid-json-pointer",
        ),
        pytest.param("poll_seconds: '1'\n", ['1: poll_seconds: must be a number, but is "1"'], id="text-as-a-number"),
        pytest.param(
            "poll_seconds: true\n", ["1: poll_seconds: must be a number, but is true"], id="boolean-as-a-number"
        ),
        pytest.param(
            "poll_seconds: .inf\n", ["1: poll_seconds: must be a finite number, but is Infinity"], id="infinite-number"
        ),
        pytest.param("poll_seconds: 0\n", ["1: poll_seconds: must be greater than 0, but is 0"], id="too-small"),
        pytest.param(
            "guards:\n  max_delete_percent: 101\n",
            ["2: guards.max_delete_percent: must be less than or equal to 100, but is 101"],
            id="too-large",
        ),
        pytest.param(
            "merge: {profile: kpt}\n",
            ["1: merge.profile: must be 'safe' or 'compat', but is \"kpt\""],
            id="unknown-profile",
        ),
        pytest.param(
            "git:\n  allowed_urls:\n  - a\n  - 2\n",
            ["4: git.allowed_urls.1: must be a text, but is 2"],
            id="an-item-of-a-list",
        ),
        pytest.param(
            "functions: {exec: /bin/x}\n", ['1: functions.exec: must be a list, but is "/bin/x"'], id="text-as-a-list"
        ),
        pytest.param(
            "merge: {list_keys: []}\n", ["1: merge.list_keys: must be a mapping, but is []"], id="list-as-a-mapping"
        ),
        pytest.param(
            "merge: {deviations: {D4: 3}}\n",
            ["1: merge.deviations.D4: must be true or false, but is 3"],
            id="number-as-a-boolean",
        ),
        pytest.param(
            "merge: {deviations: {D99: false}}\n",
            [f'1: merge.deviations: must contain only the deviations {DEVIATIONS}; the value is {{"D99":false}}'],
            id="unknown-deviation",
        ),
        pytest.param(
            "git: {author: me}\n",
            [f'1: git.author: must be a name and an address, for example {AUTHOR}; the value is "me"'],
            id="author",
        ),
        pytest.param(
            "functions:\n  exec: [/bin/../fn]\n",
            [
                '2: functions.exec: must be absolute paths without . and .., for example /usr/local/bin/*; the value is ["/bin/../fn"]'
            ],
            id="a-path-with-dots",
        ),
        pytest.param(
            "functions: {exec: [fn]}\n",
            [
                '1: functions.exec: must be absolute paths without . and .., for example /usr/local/bin/*; the value is ["fn"]'
            ],
            id="a-relative-path",
        ),
        pytest.param(
            "functions: {containers: ['a b']}\n",
            [
                '1: functions.containers: must be image references, for example example.com/functions/*; the value is ["a b"]'
            ],
            id="an-image-with-a-blank",
        ),
        pytest.param(
            "functions: {image_prefix: a/}\n",
            ['1: functions.image_prefix: must be a registry and a path without a slash at the end; the value is "a/"'],
            id="a-prefix-with-a-slash",
        ),
        pytest.param(
            "config: {branch: -x}\n",
            [f'1: config.branch: must be a branch name that Git accepts: {validate_ref_name("-x")}; the value is "-x"'],
            id="branch",
        ),
        pytest.param(
            "drafts: {branch: d}\n",
            [
                '1: drafts.branch: must contain {repository} or {branch}, because otherwise all clusters share one draft; the value is "d"'
            ],
            id="one-draft-for-all",
        ),
        pytest.param(
            "drafts: {removals_branch: 'drafts/{repository}/gone'}\n",
            [f'1: drafts: {APART}; the value is {{"removals_branch":"drafts/{{repository}}/gone"}}'],
            id="removals-below-drafts",
        ),
        pytest.param(
            "drafts: {branch: 'd/{cluster}'}\n",
            [
                '1: drafts.branch: must not contain placeholders other than {repository}, {branch}, {package}; the value is "d/{cluster}"'
            ],
            id="unknown-placeholder",
        ),
        pytest.param(
            "limits: {file_bytes: 1}\nlog: {level: 1}\nx: 1\n",
            [
                "1: limits.file_bytes: must be greater than or equal to 1024, but is 1",
                "2: log.level: must be 'debug', 'info', 'warning' or 'error', but is 1",
                f"3: x: unknown setting; allowed settings: {TOP}",
            ],
            id="several-errors",
        ),
        pytest.param("- a\n", ["1: the settings must be a mapping of groups, but they are a list"], id="a-list"),
        pytest.param("a: 1\n---\nb: 1\n", ["3: the settings file must contain one YAML document"], id="two-documents"),
        pytest.param("a: 1\na: 2\n", ['2: the key "a" occurs twice in one mapping'], id="duplicate-key"),
    ],
)
def test_invalid_files(tmp_path: Path, text: str, errors: list[str]) -> None:
    assert list_errors(tmp_path, text) == [f"reconciler.yaml:{error}" for error in errors]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        pytest.param(
            "drafts: {branch: 'a..{branch}'}\n",
            "drafts.branch: must produce branch names that Git accepts: ",
            id="draft-branch",
        ),
        pytest.param(
            "state_ref: 'refs/a b/{repository}'\n",
            "state_ref: must produce ref names that Git accepts: ",
            id="state-ref",
        ),
    ],
)
def test_invalid_git_names_are_refused(tmp_path: Path, text: str, start: str) -> None:
    (error,) = list_errors(tmp_path, text)

    assert error.startswith(f"reconciler.yaml:1: {start}")


@pytest.mark.parametrize(
    "state_ref",
    [
        pytest.param("heads/{repository}", id="without-refs"),
        pytest.param("refs/state", id="without-a-placeholder"),
        pytest.param("refs/{repository}/state", id="placeholder-in-the-middle"),
        pytest.param("refs/state/of-{repository}", id="placeholder-within-a-segment"),
        pytest.param("refs/{repository}/{repository}", id="two-placeholders"),
    ],
)
def test_state_refs_are_listed_by_their_prefix(tmp_path: Path, state_ref: str) -> None:
    (error,) = list_errors(tmp_path, f"state_ref: '{state_ref}'\n")

    assert error == (
        "reconciler.yaml:1: state_ref: must start with refs/ and end with /{repository}, "
        f'for example refs/reconciler/state/{{repository}}; the value is "{state_ref}"'
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("forge: {hosts: [{url: https://e.com, token: sesame}]}", id="unknown-setting-of-a-host"),
        pytest.param(
            "forge: {hosts: [{url: https://e.com, kind: github, api: {token: sesame}}]}", id="mapping-as-text"
        ),
        pytest.param("forge: {hosts: [{url: https://e.com, kind: github, token_file: [sesame]}]}", id="list-as-file"),
        pytest.param("webhooks: {secret_file: {value: sesame}}", id="mapping-as-file"),
        pytest.param("git: {remotes: [{password: sesame}]}", id="unknown-setting-of-a-remote"),
        pytest.param("git: {credentials_file: [[sesame]]}", id="nested-list-as-file"),
    ],
)
def test_settings_error_does_not_contain_possible_secrets(text: str, tmp_path: Path) -> None:
    file = tmp_path / "reconciler.yaml"
    file.write_text(text)

    with pytest.raises(SettingsError) as error:
        load_settings(str(file), {}, tmp_path)

    assert "sesame" not in str(error.value)
    assert str(error.value).startswith(f"{file}:1: ")


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        pytest.param(
            {"RECONCILER_POLL_SECONDS": "soon"},
            'RECONCILER_POLL_SECONDS: poll_seconds: must be a number, but is "soon"',
            id="value",
        ),
        pytest.param(
            {"RECONCILER_POLL_SECONDS": "[1"},
            'RECONCILER_POLL_SECONDS: poll_seconds: must be a number, but is "[1"',
            id="invalid-yaml",
        ),
        pytest.param(
            {"RECONCILER_MERGE__STYLE": "x"},
            f"RECONCILER_MERGE__STYLE: merge.style: unknown setting; allowed settings: {MERGE_KEYS}",
            id="unknown",
        ),
        pytest.param(
            {"RECONCILER_CACHE__SIZE": "1"},
            'RECONCILER_CACHE__SIZE: cache: must be a text, but is {"size":"1"}',
            id="setting-below-a-text-setting",
        ),
        pytest.param(
            {"RECONCILER_MERGE": "safe"},
            f'RECONCILER_MERGE: merge: must be a mapping of settings ({MERGE_KEYS}), but is "safe"',
            id="a-group",
        ),
        pytest.param(
            {"RECONCILER_GIT__ALLOWED_URLS": "[1]"},
            "RECONCILER_GIT__ALLOWED_URLS: git.allowed_urls.0: must be a text, but is 1",
            id="an-item-of-a-list",
        ),
    ],
)
def test_invalid_variables(tmp_path: Path, variables: dict[str, str], error: str) -> None:
    assert list_errors(tmp_path, "merge: {profile: compat}\n", **variables) == [error]


def test_variable_can_contain_a_mapping(tmp_path: Path) -> None:
    settings = load_settings(
        None, {"RECONCILER_MERGE__LIST_KEYS": "{example.org/Gate: {spec/ports: [name]}}"}, tmp_path
    )

    assert settings.merge.list_keys == {"example.org/Gate": {"spec/ports": ["name"]}}


def test_explicit_file_must_exist(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"

    with pytest.raises(SettingsError) as error:
        load_settings(str(missing), {}, tmp_path)

    assert str(error.value) == f"{missing}: the settings file must exist and be a regular file"


def test_explicit_file_replaces_the_default_file(tmp_path: Path) -> None:
    (tmp_path / "reconciler.yaml").write_text("cache: usual\n")
    (tmp_path / "mine.yaml").write_text("poll_seconds: 1\n")

    settings = load_settings(str(tmp_path / "mine.yaml"), {}, tmp_path)

    assert settings == Settings(poll_seconds=1.0)


def test_missing_file_means_defaults(tmp_path: Path) -> None:
    assert load_settings(None, {}, tmp_path) == Settings()


def test_example_contains_every_setting_with_its_default() -> None:
    written = parse_yaml(EVERY_SETTING.read_bytes()).documents[0].data

    assert written == json.loads(Settings().model_dump_json())


def test_every_setting_of_the_example_has_a_comment() -> None:
    lines = EVERY_SETTING.read_text().splitlines()
    settings = [index for index, line in enumerate(lines) if ": " in line and not line.lstrip().startswith("#")]

    assert settings
    assert [lines[index] for index in settings if not lines[index - 1].lstrip().startswith("# ")] == []


def test_committed_schema_is_current() -> None:
    assert SCHEMA.read_text() == build_schema_text(), "run python scripts/make_reference.py"


def test_schema_accepts_the_example_and_refuses_unknown_settings() -> None:
    schema = json.loads(SCHEMA.read_text())
    written = parse_yaml(EVERY_SETTING.read_bytes()).documents[0].data

    jsonschema_rs.meta.validate(schema)
    jsonschema_rs.validate(schema, written)
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema, {**written, "poll_second": 1})


def test_default_limits_are_equal_to_those_of_the_code() -> None:
    limits = Settings().limits

    assert limits.cel.model_dump() == asdict(ExpressionLimits())
    assert (limits.file_bytes, limits.yaml_depth) == (DEFAULT_YAML_LIMITS.file_bytes, DEFAULT_YAML_LIMITS.depth)
    assert (limits.yaml_aliases, limits.yaml_documents) == (DEFAULT_YAML_LIMITS.aliases, DEFAULT_YAML_LIMITS.documents)


def test_file_has_priority_over_kpt_variables(tmp_path: Path) -> None:
    assert load(tmp_path, "functions: {engine: docker}\n", KRM_FN_RUNTIME="podman").functions.engine == "docker"


def test_invalid_kpt_variable(tmp_path: Path) -> None:
    (error,) = list_errors(tmp_path, "", KRM_FN_RUNTIME="rkt")

    assert error == "KRM_FN_RUNTIME: functions.engine: must be '', 'podman', 'docker' or 'nerdctl', but is \"rkt\""


@pytest.mark.parametrize(
    ("text", "address", "setting"),
    [
        pytest.param("", "127.0.0.1:8080", "", id="default"),
        pytest.param("server: {listen: 'a:1'}\n", "a:1", "server.listen", id="setting"),
        pytest.param("server: {listen: ''}\n", "", "server.listen", id="no-server"),
        pytest.param("webhooks: {listen: 'a:1', secret_file: s}\n", "a:1", "webhooks.listen", id="deprecated-setting"),
        pytest.param(
            "server: {listen: 'b:1'}\nwebhooks: {listen: 'a:1', secret_file: s}\n", "a:1", "webhooks.listen", id="both"
        ),
    ],
)
def test_address_of_the_server(tmp_path: Path, text: str, address: str, setting: str) -> None:
    settings = load(tmp_path, text)

    assert (settings.listen_address, settings.listen_setting) == (address, setting)


CREDENTIALS = (
    "git: {credentials: [{url: github.com, read: {github_app: {app_id: 7, key_file: k}}, api: {token_file: t}}]}\n"
)


def test_credentials_of_the_api_are_sufficient_for_a_forge(tmp_path: Path) -> None:
    settings = load(tmp_path, CREDENTIALS + "forge: {hosts: [{url: https://github.com, kind: github}]}\n")

    (entry,) = settings.git.credentials
    assert entry.read is not None
    assert entry.read.github_app is not None
    assert entry.read.github_app.app_id == "7"
    assert list(list_deprecated_settings(settings)) == []


def test_deprecated_settings_have_a_replacement(tmp_path: Path) -> None:
    hosts = "[{url: https://a.example, kind: gitea, token_file: t}, {url: https://b.example/c, kind: agit}]"
    text = f"git: {{credentials_file: c, ssh_key_file: k}}\nforge: {{hosts: {hosts}}}\n"

    deprecated = dict(list_deprecated_settings(load(tmp_path, text)))

    assert list(deprecated) == ["git.credentials_file", "git.ssh_key_file", "forge.hosts.0.token_file"]
    assert deprecated["git.ssh_key_file"] == (
        'an entry of `git.credentials`, for example {url: "*", read: {ssh_key_file: …}, write: {ssh_key_file: …}}'
    )
    assert deprecated["forge.hosts.0.token_file"] == (
        "`api: {token_file: …}` in an entry of `git.credentials` that matches 'https://a.example'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "config: {url: URL}",
        "fleet: {url: URL}",
        "status: {url: URL}",
        "git: {allowed_urls: [URL]}",
        "git: {remotes: [{url: URL, max_pushes_per_minute: 1}]}",
        "git: {credentials: [{url: URL, read: {token_file: t}}]}",
        "git: {credentials: [{url: h, write: {token_file: t, url: URL}}]}",
        "forge: {hosts: [{url: URL, kind: agit}]}",
        "forge: {hosts: [{url: https://h/a, kind: gitea, api: URL, token_file: t}]}",
        "notifications: {channels: [{name: a, kind: webhook, url: URL, secret_file: s}]}",
        "notifications: {channels: [{name: a, kind: slack, token_file: t, channel: c, api: URL}]}",
        "notifications: {proxy: URL}",
        "rendering: {dask: URL}",
        "server: {external_url: URL}",
    ],
)
@pytest.mark.parametrize("url", ["https://me:can/ary@h.example/a", "https://canary@h.example/a"])
def test_token_in_a_url_is_refused_and_not_repeated(tmp_path: Path, text: str, url: str) -> None:
    (message,) = list_errors(tmp_path, text.replace("URL", f"'{url}'"))

    assert "(CredentialInUrl)" in message
    assert "ary" not in message


def test_credentials_of_the_documentation_match_the_schema_and_the_models(tmp_path: Path) -> None:
    text = """\
git:
  credentials:
  - url: github.com/acme/*
    read: {github_app: {app_id: 1, installation: 2, key_file: /run/secrets/app-read.pem}}
    write: {github_app: {app_id: Iv1.abc, installation: 7, key_file: /run/secrets/app-write.pem}}
    api: {token_file: /run/secrets/api}
  - url: git.example.com/platform/**
    read: {token_file: /run/secrets/ro, username: oauth2}
    write: {ssh_key_file: /run/secrets/deploy, url: "ssh://git@git.example.com/platform/", known_hosts_file: /etc/known_hosts}
  - url: "*"
    read: {credentials_file: /run/secrets/git-credentials}
"""

    settings = load(tmp_path, text)

    jsonschema_rs.validate(json.loads(build_schema_text()), parse_yaml(text.encode()).documents[0].data)
    first, second, third = settings.git.credentials
    assert first.read is not None
    assert first.read.github_app is not None
    assert (first.read.github_app.app_id, first.read.github_app.installation) == ("1", 2)
    assert second.write is not None
    assert second.write.url == "ssh://git@git.example.com/platform/"
    assert third.write is None
