"""Values of charts that look like secrets are not copied, and are reported without their text."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.requests import (
    HelmRequest,
    PackageRequest,
    ReadRequests,
    RepositoryReference,
    SourceRequest,
    UpstreamReference,
)
from reconciler.adopt.secret_values import leave_out_secret_values
from reconciler.lazy_dataclasses import replace

UPSTREAM = UpstreamReference(RepositoryReference("helm", "https://charts.example.com"), "ksm", (("version", "1.0.0"),))
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n"


def request(values: dict[str, Any]) -> PackageRequest:
    return PackageRequest("ksm", "ksm", "berlin", "ksm", UPSTREAM, HelmRequest("ksm", "mon", values=values), "mon")


def check(*requests: PackageRequest) -> tuple[ReadRequests, dict[tuple[str, str], str]]:
    checked = leave_out_secret_values(ReadRequests(requests, {}, ()))
    return checked.requests, dict(checked.unverified)


@pytest.mark.parametrize(
    ("values", "kept", "name"),
    [
        ({"auth": {"adminPassword": "hunter22", "user": "ada"}}, {"auth": {"user": "ada"}}, "auth.adminPassword"),
        ({"api_key": "hunter22"}, {}, "api_key"),
        ({"token": 12345678}, {}, "token"),
        ({"oauth": {"clientSecret": "hunter22"}}, {"oauth": {}}, "oauth.clientSecret"),
        ({"tls": {"key": KEY}}, {"tls": {}}, "tls.key"),
        ({"users": [{"name": "ada", "password": "hunter22"}]}, {"users": [{"name": "ada"}]}, "users[0].password"),
        ({"env": [{"name": "DB_PASSWORD", "value": "hunter22"}]}, {"env": [{"name": "DB_PASSWORD"}]}, "env[0].value"),
    ],
)
def test_secret_is_left_out(values: dict[str, Any], kept: dict[str, Any], name: str) -> None:
    read, unverified = check(request(values))

    (result,) = read.requests
    assert result.helm is not None
    assert result.helm.values == kept
    (entry,) = read.not_imported
    assert entry.reason == f"ksm: the value {name} looks like a secret, and is not copied"
    assert list(unverified) == [("berlin", "ksm")]


@pytest.mark.parametrize(
    "values",
    [
        {"password": ""},
        {"password": None},
        {"createToken": True},
        {"existingPassword": "db"},
        {"passwordSecretName": "db"},
        {"password": "vault:secret/data/db#password"},
        {"password": "ref+awssecrets://db"},
        {"password": "<path:secret/data/db#password>"},
        {"password": "ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]"},
        {"env": [{"name": "DB_USER", "value": "ada"}]},
    ],
)
def test_other_values_are_copied(values: dict[str, Any]) -> None:
    original = request(values)

    assert check(original) == (ReadRequests((original,), {}, ()), {})


def test_values_of_files_and_of_several_sources_are_checked() -> None:
    files = {
        "values/a.yaml": b"# kept\na: 1\n",
        "values/b.yaml": b"# lost\nb: 1\ndb: {password: hunter22}\n",
        "values/c.txt": b"\t{",
    }
    source = SourceRequest("chart", UPSTREAM, helm=HelmRequest("ksm", "mon", values={"password": "hunter22"}))
    original = replace(request({}), config_files=files, sources=(source,))

    read, unverified = check(original)

    (result,) = read.requests
    assert result.config_files == {**files, "values/b.yaml": b"b: 1\ndb: {}\n"}
    assert [entry.helm.values for entry in result.sources if entry.helm] == [{}]
    assert [entry.reason.split()[3] for entry in read.not_imported] == ["password", "db.password"]
    assert unverified == {("berlin", "ksm"): "contains 2 secret values, which the import does not copy"}
