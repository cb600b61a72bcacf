"""People whom a reverse proxy identifies, and forged headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import PROXY, ConsoleClient, open_console, use_authentication
from tests.support.prepared_worlds import begin, drafted

SECRET = "proxy-secret-1"
IDENTITY = {
    "x_proxy_secret": SECRET, "x_forwarded_user": "u-17", "x_forwarded_preferred_username": "Ana Silva",
    "x_forwarded_email": "ana@example.com", "x_forwarded_groups": "engineering, platform",
}  # fmt: skip
ROLES = [
    {"role": "viewer", "groups": ["engineering"], "targets": "region=south"},
    {"role": "admin", "users": ["luis@example.com"]},
    {"role": "reviewer", "users": ["u-18@proxy"]},
]


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, drafted))
    client.update()
    (tmp_path / "secret").write_text(f"new-secret\n{SECRET}\n")
    use_authentication(client, auth=["proxy"], proxy={"secret_file": str(tmp_path / "secret")}, roles=ROLES)
    return client


def test_a_person_has_the_role_of_a_group(console: ConsoleClient) -> None:
    response = console.get("/targets", client=PROXY, **IDENTITY)

    assert response.status_code == 200
    assert "Ana Silva" in response.text
    assert "lisbon" in response.text
    assert "berlin" not in response.text


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        pytest.param({"x_forwarded_email": "Luis@example.com", "x_forwarded_groups": ""}, 200, id="mail-address"),
        pytest.param({"x_forwarded_user": "u-18", "x_forwarded_groups": ""}, 200, id="stable-id"),
        pytest.param({"x_proxy_secret": "new-secret"}, 200, id="new-secret"),
        pytest.param({"x_forwarded_groups": ""}, 403, id="no-role"),
        pytest.param({"x_forwarded_groups": "Engineering"}, 403, id="groups-have-a-case"),
        pytest.param({"x_forwarded_groups": "engineering-x"}, 403, id="longer-group"),
    ],
)
def test_roles_of_people(changed: dict[str, str], status: int, console: ConsoleClient) -> None:
    assert console.get("/changes", client=PROXY, **IDENTITY | changed).status_code == status


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    ("client", "changed"),
    [
        pytest.param("127.0.0.1", {}, id="this-machine"),
        pytest.param("192.0.2.1", {}, id="another-address"),
        pytest.param("192.0.2.1", {"x_forwarded_for": PROXY}, id="forged-address"),
        pytest.param(PROXY, {"x_proxy_secret": "wrong"}, id="wrong-secret"),
        pytest.param(PROXY, {"x_proxy_secret": ""}, id="empty-secret"),
        pytest.param(PROXY, {"x_proxy_secret": f"{SECRET}1"}, id="longer-secret"),
        pytest.param(PROXY, {"x_forwarded_user": ""}, id="no-user"),
    ],
)
def test_forged_headers_are_ignored(client: str, changed: dict[str, str], console: ConsoleClient) -> None:
    response = console.get("/changes", client=client, **IDENTITY | changed)

    assert response.status_code == 401
    assert "gateway" not in response.text


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("name", sorted(IDENTITY))
def test_a_repeated_header_is_refused(name: str, console: ConsoleClient) -> None:
    # A dictionary of headers cannot contain a name twice, but the names of headers have no case.
    repeated = {name.replace("_", "-").upper(): IDENTITY[name]}

    assert console.get("/changes", client=PROXY, **IDENTITY, **repeated).status_code == 401


def test_the_client_of_the_proxy_has_its_own_address(console: ConsoleClient) -> None:
    headers = IDENTITY | {"x_forwarded_for": "192.0.2.7"}

    assert console.get("/changes", client=PROXY, **headers).status_code == 200


def test_a_form_needs_the_token_of_the_person(console: ConsoleClient) -> None:
    admin = IDENTITY | {"x_forwarded_email": "luis@example.com"}
    tokens = [console.context.csrf.create(name) for name in ("", "proxy:u-18", "proxy:u-17")]
    statuses = [console.post("/system/pass", {"csrf": token}, client=PROXY, **admin).status_code for token in tokens]

    assert statuses == [403, 403, 303]
    assert console.requested_passes == 1


def test_names_are_decoded_as_utf_8(console: ConsoleClient) -> None:
    headers = IDENTITY | {"x_forwarded_preferred_username": "Zoë Müller"}

    assert "Zoë Müller" in console.get("/", client=PROXY, **headers).text
