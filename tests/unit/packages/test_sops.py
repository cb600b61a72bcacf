"""Tests of the recognition of SOPS documents, and of the edits that SOPS accepts."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import Document
from reconciler.packages.parsing import edit_document, parse_cached
from reconciler.packages.sops import SopsMacError, SopsScope, find_stale_mac, is_sops_document
from tests.support.sops import ciphertext, seal_text

BODY = f"""\
apiVersion: v1
kind: Secret
metadata:
  name: db
  labels: {{app: shop, tier: "2"}}
  note: {ciphertext("note")}
data:
  user: {ciphertext("user")}
  empty: ""
  keys:
    - {ciphertext("first")}
    - {ciphertext("second")}
type: Opaque
"""
MAC_ONLY = "mac_only_encrypted: true"
DATA_ONLY = "encrypted_regex: ^(data|stringData)$"


def parse(text: str) -> Document:
    return parse_cached(text.encode()).documents[0]  # type: ignore[union-attr]


def edited(document: Document, edit: Callable[[Any], object]) -> Any:
    data = deepcopy(document.data)
    edit(data)
    return data


def refused_pointer(text: str, edit: Callable[[Any], object]) -> str:
    """Return the pointer of the field because of which the edit is refused, or ""."""
    document = parse(text)
    try:
        edit_document(document, edited(document, edit))
    except SopsMacError as error:
        return format_pointer(error.path)
    return ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (seal_text(BODY), True),
        (seal_text("a: 1\n"), True),
        ("sops: {mac: x}\n", False),
        ("sops: {lastmodified: x}\n", False),
        ("sops: {mac: x, lastmodified: y}\n", True),
        ("sops: [mac, lastmodified]\n", False),
        ("kind: ConfigMap\ndata:\n  sops: {mac: x, lastmodified: y}\n", False),
        ("- sops: {mac: x, lastmodified: y}\n", False),
        ("sops\n", False),
    ],
    ids=["secret", "no-resource", "no-time", "no-mac", "minimal", "list", "nested", "item", "text"],
)
def test_recognition(text: str, expected: bool) -> None:
    assert is_sops_document(parse(text).data) is expected


def add_label(data: Any) -> None:
    data["metadata"]["labels"]["team"] = "a"


def change_password(data: Any) -> None:
    data["data"]["user"] = "admin"


EDITS: dict[str, Callable[[Any], object]] = {
    "label": add_label,
    "changed-label": lambda data: data["metadata"]["labels"].update(app="store"),
    "label-type": lambda data: data["metadata"]["labels"].update(tier=2),
    "label-removed": lambda data: data["metadata"]["labels"].pop("app"),
    "value": change_password,
    "value-removed": lambda data: data["data"].pop("user"),
    "value-renamed": lambda data: data["data"].update(login=data["data"].pop("user")),
    "value-added": lambda data: data["data"].update(more="text"),
    "empty-filled": lambda data: data["data"].update(empty="text"),
    "values-swapped": lambda data: data["data"]["keys"].reverse(),
    "sops": lambda data: data["sops"].update(version="3.12.0"),
    "nothing": lambda data: data.update(type="Opaque"),
    "empty-map": lambda data: data.update(more={}),
    "empty-list-in-data": lambda data: data["data"].update(more=[]),
    "ciphertext-in-plaintext": lambda data: data["metadata"].update(note="x"),
}


@pytest.mark.parametrize(
    ("edit", "plain_mac", "mac_only"),
    [
        ("label", "/metadata/labels/team", ""),
        ("changed-label", "/metadata/labels/app", ""),
        ("label-type", "/metadata/labels/tier", ""),
        ("label-removed", "/metadata/labels/app", ""),
        ("value", "/data/user", "/data/user"),
        ("value-removed", "/data/user", "/data/user"),
        ("value-renamed", "/data/user", "/data/user"),
        ("value-added", "/data/more", "/data/more"),
        ("empty-filled", "/data/empty", "/data/empty"),
        ("values-swapped", "/data/keys/0", "/data/keys/0"),
        ("sops", "/sops/version", "/sops/version"),
        ("nothing", "", ""),
        ("empty-map", "/more", ""),
        ("empty-list-in-data", "/data/more", ""),
        ("ciphertext-in-plaintext", "/metadata/note", "/metadata/note"),
    ],
    ids=lambda value: str(value),
)
def test_edits(edit: str, plain_mac: str, mac_only: str) -> None:
    assert refused_pointer(seal_text(BODY, DATA_ONLY), EDITS[edit]) == plain_mac
    assert refused_pointer(seal_text(BODY, DATA_ONLY, MAC_ONLY), EDITS[edit]) == mac_only


@pytest.mark.parametrize(
    ("rules", "is_allowed"),
    [
        ((DATA_ONLY,), True),
        (("encrypted_regex: data",), False),  # SOPS searches the pattern in each key, here in "metadata".
        (("unencrypted_regex: ^(apiVersion|kind|metadata|type)$",), True),
        (("unencrypted_regex: ^kind$",), False),
        (("encrypted_suffix: ata",), False),
        (("encrypted_suffix: _secret",), True),
        (("unencrypted_suffix: labels",), True),
        (("unencrypted_suffix: _plain",), False),
        ((), False),
        ((DATA_ONLY, "unencrypted_suffix: labels"), False),
        (("encrypted_regex: '('",), False),
        (("unencrypted_regex: '('",), False),
        (("encrypted_suffix: .",), True),
        (("encrypted_suffix: '('",), True),
        (("encrypted_comment_regex: x", DATA_ONLY), False),
    ],
    ids=[
        "regex", "regex-search", "unencrypted-regex", "other-field", "suffix", "other-suffix", "unencrypted-suffix",
        "other-unencrypted-suffix", "default", "two-rules", "invalid", "invalid-unencrypted",
        "suffix-is-no-pattern", "any-suffix", "comments-and-regex",
    ],
)  # fmt: skip
def test_rules_that_select_encrypted_fields(rules: tuple[str, ...], is_allowed: bool) -> None:
    assert (refused_pointer(seal_text(BODY, MAC_ONLY, *rules), add_label) == "") is is_allowed


COMMENTED = f"""\
kind: ConfigMap
metadata:
  name: db
  labels: {{app: shop}}
data:
  host: example.com
  empty: ""
  list: []
  # sops:enc
  password: {ciphertext("password")}
"""


@pytest.mark.parametrize(
    ("edit", "refused"),
    [
        (lambda data: data["metadata"]["labels"].update(team="a"), ""),
        (lambda data: data["data"].update(host="example.org"), ""),
        (lambda data: data["data"].update(port="80"), "/data/port"),
        (lambda data: data["data"].update(empty="80"), "/data/empty"),
        (lambda data: data["data"].update(password="x"), "/data/password"),
        (lambda data: data["data"].pop("password"), "/data/password"),
        (lambda data: data["data"].pop("host"), "/data/host"),
        (lambda data: data["data"].update(list="x"), "/data/list"),
        (lambda data: data["sops"].update(version="4"), "/sops/version"),
        (lambda data: data.update(data=dict(reversed(data["data"].items()))), "/data/password"),
        (lambda data: data.update(metadata=dict(reversed(data["metadata"].items()))), "/metadata/labels/app"),
    ],
    ids=[
        "other-section",
        "plaintext",
        "new",
        "empty",
        "encrypted",
        "removed",
        "plaintext-removed",
        "list",
        "sops",
        "order",
        "order-in-other-section",
    ],
)
def test_comments_that_select_encrypted_fields(edit: Callable[[Any], object], refused: str) -> None:
    assert refused_pointer(seal_text(COMMENTED, MAC_ONLY, "encrypted_comment_regex: sops:enc"), edit) == refused


def test_comments_that_select_plaintext_fields() -> None:
    text = f"metadata:\n  # plain\n  name: db\n  token: {ciphertext('token')}\n"
    sealed = seal_text(text, MAC_ONLY, "unencrypted_comment_regex: plain")

    assert refused_pointer(sealed, lambda data: data["metadata"].update(name="cache")) == ""
    assert refused_pointer(sealed, lambda data: data["metadata"].update(more="x")) == "/metadata/more"
    assert refused_pointer(sealed, lambda data: data["metadata"].update(token="x")) == "/metadata/token"
    assert refused_pointer(sealed, lambda data: data.update(type="Opaque")) == "/type"


@pytest.mark.parametrize(
    ("text", "rules", "plaintext"),
    [
        (BODY, (DATA_ONLY,), []),
        (BODY.replace(ciphertext("user"), "YWRtaW4="), (DATA_ONLY,), ["/data/user"]),
        (BODY.replace(ciphertext("second"), "7"), (DATA_ONLY,), ["/data/keys/1"]),
        (BODY.replace(ciphertext("user"), "null"), (DATA_ONLY,), []),
        (BODY.replace(ciphertext("user"), f"x{ciphertext('user')}"), (DATA_ONLY,), ["/data/user"]),
        ("a: 1\nb_unencrypted: 2\n", (), ["/a"]),
        (COMMENTED, ("encrypted_comment_regex: sops:enc",), []),
        (COMMENTED.replace(ciphertext("password"), "x"), ("encrypted_comment_regex: sops:enc",), ["/data/password"]),
        ("a:\n  # plain\n  b: 1\nc: 2\n", ("unencrypted_comment_regex: plain",), ["/c"]),
        ("data: {}\nlist: []\n", (), []),
        ("data: {a: x}\n", ("encrypted_regex: '('",), []),
        ("data: {a: x}\n", ("encrypted_regex: a", "encrypted_suffix: a"), []),
    ],
    ids=[
        "sealed",
        "value",
        "item",
        "null",
        "prefix",
        "default",
        "comment",
        "plain-comment",
        "unencrypted-comment",
        "containers",
        "invalid-pattern",
        "two-rules",
    ],
)
def test_plaintext(text: str, rules: tuple[str, ...], plaintext: list[str]) -> None:
    assert [*map(format_pointer, SopsScope(parse(seal_text(text, *rules))).iterate_plaintext())] == plaintext


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (seal_text(BODY, DATA_ONLY), seal_text(BODY, DATA_ONLY), None),
        (seal_text(BODY, DATA_ONLY), seal_text(BODY.replace("shop", "store"), DATA_ONLY), "/metadata/labels/app"),
        (seal_text(BODY, DATA_ONLY), seal_text(BODY.replace("shop", "store"), DATA_ONLY, version=2), None),
        (seal_text(BODY, DATA_ONLY, MAC_ONLY), seal_text(BODY.replace("shop", "store"), DATA_ONLY, MAC_ONLY), None),
        (
            seal_text(BODY, DATA_ONLY, MAC_ONLY),
            seal_text(BODY.replace(ciphertext("user"), ciphertext("other")), DATA_ONLY, MAC_ONLY),
            "/data/user",
        ),
        (seal_text(BODY, DATA_ONLY), seal_text(BODY.replace("  name", "  # text\n  name"), DATA_ONLY), None),
        (seal_text("b: 1\na: 1\n"), seal_text("a: 1\nb: 1\n"), "/a"),
        (seal_text(BODY, DATA_ONLY), seal_text(BODY, DATA_ONLY).replace("age: []", "age: [{enc: x}]"), None),
        (seal_text(BODY, DATA_ONLY), seal_text(f"{BODY}more: {{}}\n", DATA_ONLY), None),
        (
            seal_text(COMMENTED, MAC_ONLY, "encrypted_comment_regex: sops:enc"),
            seal_text(COMMENTED.replace(".com", ".org"), MAC_ONLY, "encrypted_comment_regex: sops:enc"),
            None,
        ),
        (
            seal_text(COMMENTED, MAC_ONLY, "unencrypted_comment_regex: plain"),
            seal_text(COMMENTED.replace(".com", ".org"), MAC_ONLY, "unencrypted_comment_regex: plain"),
            None,
        ),
        (BODY, seal_text(BODY, DATA_ONLY), None),
        (seal_text(BODY, DATA_ONLY), BODY, None),
    ],
    ids=[
        "equal",
        "label",
        "encrypted-again",
        "mac-only",
        "value",
        "comment",
        "order",
        "new-recipient",
        "empty-map",
        "comment-rule",
        "unencrypted-comment-rule",
        "sealed-now",
        "plain-now",
    ],
)
def test_stale_mac(old: str, new: str, expected: str | None) -> None:
    path = find_stale_mac(parse(old), parse(new))
    assert (path and format_pointer(path)) == expected


def test_allowed_edit_changes_one_line() -> None:
    text = seal_text(BODY, DATA_ONLY, MAC_ONLY)
    document = parse(text)
    result = edit_document(document, edited(document, lambda data: data.update(type="other")))
    assert result.text == text.replace("type: Opaque", "type: other")
