"""Random edits of SOPS documents: SOPS can decrypt each document after the edits that this program applies."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.krm.yaml import Document, parse_yaml
from reconciler.packages.parsing import edit_document, parse_cached
from reconciler.packages.sops import SopsMacError
from tests.support.examples import examples
from tests.support.sops import MAC_ONLY, SopsKey, make_sops_key

TEXT = """\
apiVersion: v1
kind: Secret
metadata:
  # secret-comment
  name: db
  labels:
    app: shop
    tier: "2"
  annotations: {a_plain: x}
stringData:
  # plain-comment
  user: admin
  # secret-comment
  password: hunter2
  empty: ""
  nothing: null
  port: 5432
  ports_secret: [80, 443]
  nested:
    - {name: one_plain, on: true}
    - name: two
      # plain-comment
      ratio: 1.5
"""
RULES = (
    (),
    ("--encrypted-regex", "^(data|stringData)$"),
    ("--unencrypted-regex", "^(metadata|kind|apiVersion|port)$"),
    ("--encrypted-suffix", "_secret"),
    ("--unencrypted-suffix", "_plain"),
    ("encrypted_comment_regex", "secret-comment"),
    ("unencrypted_comment_regex", "plain-comment"),
)
PATHS: tuple[tuple[Any, ...], ...] = (
    ("metadata", "labels", "app"), ("metadata", "labels", "team"), ("metadata", "annotations", "a_plain"),
    ("metadata", "annotations", "b_plain"), ("metadata", "name"), ("stringData", "user"), ("stringData", "password"),
    ("stringData", "empty"), ("stringData", "nothing"), ("stringData", "port"), ("stringData", "new"),
    ("stringData", "new_plain"), ("stringData", "ports_secret"), ("stringData", "nested"),
    ("stringData", "nested", 0, "name"), ("stringData", "nested", 0, "more"), ("stringData", "nested", 1, "ratio"),
    ("stringData", "nested", 1, "more_plain"), ("sops", "lastmodified"), ("type",), ("type_plain",),
)  # fmt: skip
REMOVE = object()
values = st.sampled_from(["x", "", None, 7, 2.5, True, {}, {"k": "v"}, {"k_plain": "v", "l_secret": 1}, ["a"], REMOVE])
edits = st.lists(st.tuples(st.sampled_from(PATHS), values), min_size=1, max_size=3)


class SealedDocuments:
    """Encrypted documents and their key. Hypothesis would print the documents if this was a dataclass."""

    def __init__(self, key: SopsKey, texts: list[str]) -> None:
        self.key = key
        self.texts = texts


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> SealedDocuments:
    """Return a key, and the document encrypted with each rule and both kinds of MAC."""
    folder: Path = tmp_path_factory.mktemp("sops")
    key = make_sops_key(folder)
    sealed = []
    for rule in RULES:
        for is_mac_only in (False, True):
            if rule and not rule[0].startswith("--"):
                lines = (
                    f"creation_rules:\n  - {rule[0]}: {rule[1]}\n    mac_only_encrypted: {str(is_mac_only).lower()}\n"
                )
                (folder / ".sops.yaml").write_text(f"{lines}    age: {key.recipient}\n")
                sealed.append(key.encrypt(TEXT, "--config", str(folder / ".sops.yaml")))
            else:
                sealed.append(key.encrypt(TEXT, *rule, *([MAC_ONLY] if is_mac_only else [])))
    return SealedDocuments(key, sealed)


def apply_edits(data: Any, changes: list[tuple[tuple[Any, ...], Any]]) -> Any:
    """Return the data after the edits. An edit without effect is skipped, such as an edit below a removed value."""
    data = deepcopy(data)
    for path, value in changes:
        holder = data
        for step in path[:-1]:
            is_list = isinstance(holder, list) and isinstance(step, int) and step < len(holder)
            holder = holder[step] if is_list else holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict):
            holder.pop(path[-1], None) if value is REMOVE else holder.update({path[-1]: deepcopy(value)})
    return data


def parse(text: str) -> Document:
    file = parse_cached(text.encode())
    return file.documents[0]  # type: ignore[union-attr]


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 2 * len(RULES) - 1), changes=edits)
def test_sops_decrypts_each_edited_document(
    documents: SealedDocuments, number: int, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    key, sealed = documents.key, documents.texts
    document = parse(sealed[number])
    data = apply_edits(document.data, changes)
    try:
        edited = edit_document(document, data)
    except SopsMacError:
        return
    if edited is document:
        return

    decrypted = key.decrypt(edited.text)

    assert not decrypted.startswith("error:"), decrypted
    expected = apply_edits(parse(key.decrypt(sealed[number])).data, changes)
    assert parse_yaml(decrypted.encode()).documents[0].data == expected
