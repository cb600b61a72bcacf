"""Tests of SOPS documents in clones, pipelines, merges and checks of packages."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.api.kpt import UpdateStrategy
from reconciler.catalog.files import File, FileTree
from reconciler.krm.merge3.rules import ABSENT
from reconciler.packages.clone import ResolvedUpstream, add_merge_comments, clone_package
from reconciler.packages.kptfile import read_kptfile
from reconciler.packages.package_context import ensure_package_context
from reconciler.packages.pipeline import render_pipelines
from reconciler.packages.sops_files import check_sops_files, has_sops_document
from reconciler.packages.update.package_diff import list_changed_files
from reconciler.packages.update.three_way import merge_packages
from tests.support.sops import ciphertext, seal_text
from tests.unit.packages.builders import KPTFILE, build_tree, read_texts
from tests.unit.packages.update.builders import SAFE, build_package, format_resource, run_update

DATA_ONLY = "encrypted_regex: ^data$"


def secret(value: str = "one", label: str = "a", *rules: str, version: int = 1) -> str:
    body = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  labels: {{l: {label}}}\ndata:\n  p: "
    return seal_text(body + ciphertext(value) + "\n", DATA_ONLY, *rules, version=version)


SOPS_JSON = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "j"},
        "data": {"p": ciphertext("json")},
        "sops": {"mac": ciphertext("mac"), "lastmodified": "2026", "encrypted_regex": "^data$"},
    },
    indent=1,
)
PLAIN = format_resource("plain", "1")
LABELS = f"{KPTFILE}pipeline:\n  mutators:\n    - image: set-labels:v0.2\n      configMap: {{team: a}}\n"
CRLF = secret().replace("\n", "\r\n")
ANCHORED = secret().replace("labels: {l: a}", "labels: &labels {l: a}\n  annotations: *labels")


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.yaml", secret(), True),
        ("a.yaml", PLAIN, False),
        ("a.yaml", f"{PLAIN}---\n{secret()}", True),
        ("a.yaml", f"# sops\n{PLAIN}", False),
        ("a.json", SOPS_JSON, True),
        ("a.json", secret(), False),
        ("a.yaml", "sops: [\n", False),
        ("a.yaml", CRLF, True),
    ],
    ids=["sealed", "plain", "second", "comment", "json", "yaml-as-json", "unparsable", "crlf"],
)
def test_files_with_sops_documents(path: str, content: str, expected: bool) -> None:
    assert has_sops_document(path, content.encode()) is expected


@pytest.mark.parametrize(
    "content",
    [
        secret(), secret("one", "a", "mac_only_encrypted: true"), CRLF, ANCHORED, "\ufeff" + secret(), secret().rstrip(),
        f"{secret()}---\n{PLAIN}", secret().replace("kind: Secret\n", ""),
    ],
    ids=["sealed", "mac-only", "crlf", "anchors", "bom", "no-last-line-end", "two-documents", "no-kind"],
)  # fmt: skip
def test_clones_and_functions_keep_the_bytes(content: str) -> None:
    sealed = content.partition("---\n")[0]
    files = FileTree({name: File(text.encode()) for name, text in {"Kptfile": LABELS, "s.yaml": content}.items()})
    files = files.with_files(
        {"sub/Kptfile": KPTFILE.encode(), "sub/s.yaml": content.encode(), "s.json": SOPS_JSON.encode()}
    )

    cloned, findings = clone_package(files, "app", ResolvedUpstream("r", "d", "v1", "c"))
    result = render_pipelines(cloned)

    assert (findings, result.failure) == ((), None)
    assert result.files["s.json"].data.decode() == SOPS_JSON
    assert [result.files[path].data.decode().partition("---\n")[0] for path in ("s.yaml", "sub/s.yaml")] == [sealed] * 2
    if "---\n" in content:
        assert "team: a" in result.files["s.yaml"].data.decode().partition("---\n")[2]
    assert render_pipelines(result.files).files == result.files


def test_info_lists_the_functions_of_each_document() -> None:
    kptfile = (
        f"{LABELS}    - {{image: set-namespace:v0.4, configMap: {{namespace: n}}, selectors: [{{kind: ConfigMap}}]}}\n"
    )
    kptfile += "    - {image: set-annotations:v0.1, configMap: {x: y}, exclude: [{name: j}]}\n"
    files = build_tree({"Kptfile": kptfile, "s.json": SOPS_JSON, "s.yaml": secret(), "p.yaml": PLAIN})

    findings = render_pipelines(files).findings

    assert [
        (finding.location.file, finding.message.removeprefix("this SOPS document is not passed to "))
        for finding in findings
    ] == [
        ("s.json", "the function set-labels:v0.2, because a change would break its MAC"),
        ("s.yaml", "the functions set-labels:v0.2, set-annotations:v0.1, because a change would break its MAC"),
    ]
    assert {finding.code for finding in findings} == {"SopsWithheld"}


def test_functions_cannot_use_an_encrypted_configuration() -> None:
    kptfile = f"{KPTFILE}pipeline:\n  mutators:\n    - {{image: set-labels:v0.2, configPath: s.yaml}}\n"
    result = render_pipelines(build_tree({"Kptfile": kptfile, "s.yaml": secret()}))
    assert result.failure
    assert "configPath refers to the SOPS document" in result.failure.message


def test_function_does_not_replace_an_encrypted_document() -> None:
    source = (
        'ctx.resource_list["items"].append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x",'
        ' "annotations": {"internal.config.kubernetes.io/path": "s.yaml", "internal.config.kubernetes.io/index": "0"}}})'
    )
    kptfile = f"{KPTFILE}pipeline:\n  mutators:\n    - {{image: starlark:v0.5, configMap: {{source: {json.dumps(source)}}}}}\n"
    result = render_pipelines(build_tree({"Kptfile": kptfile, "s.yaml": secret(), "p.yaml": PLAIN}))
    assert result.failure
    assert result.files["s.yaml"].data.decode() == secret()


def test_sops_config_is_not_a_resource() -> None:
    files = build_tree({"Kptfile": LABELS, ".sops.yaml": "creation_rules: [{age: age1}]\n"})
    result = render_pipelines(files)
    assert (result.failure, result.files[".sops.yaml"]) == (None, files[".sops.yaml"])
    assert add_merge_comments(files)[0][".sops.yaml"] == files[".sops.yaml"]


def test_kptfile_must_not_be_encrypted() -> None:
    [finding] = read_kptfile(seal_text(KPTFILE).encode())  # type: ignore[misc]
    assert finding.code == "KptfileInvalid"
    assert "must not be encrypted with SOPS" in finding.message


def test_package_context_must_not_be_encrypted() -> None:
    context = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\ndata:\n  name: old\n"
    files = build_tree({"Kptfile": KPTFILE, "package-context.yaml": seal_text(context, DATA_ONLY)})
    after, [finding] = ensure_package_context(files, "new", "new")
    assert (after, finding.code) == (files, "SopsMacBroken")


# The tests of this section merge packages. `None` means that the file does not exist.

COMMENTED = secret().replace("metadata:\n", "metadata: # kpt-merge: /db\n")
PLAIN_SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  p: cGxhaW4=\n"
PLAIN_COMMENTED = PLAIN_SECRET.replace("metadata:\n", "metadata: # kpt-merge: /db\n")
TWO, THREE = secret("two", version=2), secret("three", version=3)


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected", "has_conflict"),
    [
        (secret(), secret(), TWO, TWO, False),
        (secret(), TWO, secret(), TWO, False),
        (secret(), TWO, TWO, TWO, False),
        (secret(), TWO, THREE, "local", True),
        (secret(), None, secret(), None, False),
        (secret(), None, TWO, TWO, True),
        (secret(), TWO, None, None, True),
        (secret(), secret(), None, None, False),
        (None, TWO, THREE, "local", True),
        (secret(), TWO, COMMENTED, TWO, False),
        (secret(), None, COMMENTED, None, False),
        (secret(), secret(), COMMENTED, COMMENTED, False),
        (PLAIN_SECRET, secret(), PLAIN_COMMENTED, secret(), False),
        (PLAIN_SECRET, secret(), TWO, "local", True),
        (PLAIN_SECRET, PLAIN_SECRET, TWO, TWO, False),
        (f"{secret()}---\n{PLAIN}", f"{secret()}---\n{PLAIN}# end\n", f"{TWO}---\n{PLAIN}", "local", True),
    ],
    ids=[
        "local", "upstream", "same", "both", "deleted-upstream", "deleted-upstream-and-changed", "deleted-locally",
        "deleted-locally-only", "added-twice", "kpt-comment", "deleted-with-kpt-comment", "only-kpt-comment",
        "encrypted-upstream", "encrypted-on-both-sides", "encrypted-locally", "two-documents",
    ],
)  # fmt: skip
@pytest.mark.parametrize("winner", ["local", "upstream"])
@pytest.mark.parametrize("path", ["s.yaml", "s.yml"])
def test_merge(
    origin: str | None, updated: str | None, local: str | None, expected: str | None, has_conflict: bool,
    winner: str, path: str,
) -> None:  # fmt: skip
    options = replace(SAFE, rules=replace(SAFE.rules, winner=winner))  # type: ignore[arg-type]
    result = run_update((build_package({path: text} if text else {}) for text in (origin, updated, local)), options)
    expected = (local if winner == "local" else updated) if expected == "local" else expected

    assert read_texts(result.files).get(path) == expected
    assert [(conflict.kind, conflict.file) for conflict in result.conflicts] == [("file", path)] * has_conflict
    assert all(is_hidden(side) for conflict in result.conflicts for side in (conflict.local, conflict.upstream))
    assert result.findings == ()


def is_hidden(side: object) -> bool:
    return side is ABSENT or "ENC[" not in str(side)


MAC_ONLY = "mac_only_encrypted: true"
RENDERED, SOURCE = secret("one", "b", MAC_ONLY), secret("one", "a", MAC_ONLY)
ROTATED = secret("two", "b", MAC_ONLY, version=2)


@pytest.mark.parametrize(
    ("rendered", "source", "local", "expected"),
    [
        (RENDERED, SOURCE, ROTATED, secret("two", "a", MAC_ONLY, version=2)),
        (RENDERED, SOURCE, RENDERED, SOURCE),
        (RENDERED, RENDERED, ROTATED, ROTATED),
        (RENDERED, SOURCE, ROTATED.replace("l: b", "l: c"), ROTATED.replace("l: b", "l: c")),
        (
            f"{RENDERED}---\n{PLAIN}".replace("value: 1", "value: 2"),
            f"{SOURCE}---\n{PLAIN}",
            f"{ROTATED}---\n{PLAIN}# end\n".replace("value: 1", "value: 2"),
            f"{secret('two', 'a', MAC_ONLY, version=2)}---\n{PLAIN}# end\n",
        ),
        (secret("one", "b"), secret("one", "a"), secret("two", "b", version=2), None),
        (RENDERED, SOURCE, f"{ROTATED}---\n{PLAIN}", None),
        (RENDERED, SOURCE, PLAIN_SECRET, None),
        (RENDERED, PLAIN_SECRET, ROTATED, None),
        (RENDERED, SOURCE, f"{ROTATED}---\n[", None),
    ],
    ids=[
        "rotated", "unchanged", "no-rule", "same-field", "two-documents", "whole-mac", "more-documents",
        "decrypted", "encrypted-by-a-rule", "unparsable",
    ],
)  # fmt: skip
def test_changes_of_rules_are_separated_from_local_changes(
    rendered: str, source: str, local: str, expected: str | None
) -> None:
    rules = replace(SAFE.rules, winner="local")
    options = replace(SAFE, rules=rules, merges_sops_documents=True)
    result = merge_packages(*(build_package({"s.yaml": text}) for text in (rendered, source, local)), options)

    assert read_texts(result.files)["s.yaml"] == (expected or local)
    whole_files = [conflict.rule for conflict in result.conflicts if conflict.kind == "file"]
    assert whole_files == ([] if expected else ["sops"])
    fields = [(conflict.file, conflict.pointer) for conflict in result.conflicts if conflict.kind == "field"]
    assert fields == ([("s.yaml", "/metadata/labels/l")] if "l: c" in local else [])


def test_merge_of_json() -> None:
    sides = [build_package({"s.json": SOPS_JSON.replace("json", value)}) for value in ("one", "two", "six")]
    upstream = replace(SAFE, rules=replace(SAFE.rules, winner="upstream"))
    assert read_texts(run_update(sides, upstream).files)["s.json"] == SOPS_JSON.replace("json", "two")
    [conflict] = merge_packages(*sides, upstream).conflicts
    assert (conflict.kind, conflict.chosen, conflict.rule) == ("file", "upstream", "sops")


@pytest.mark.parametrize("strategy", ["resource-merge", "fast-forward", "force-delete-replace", "copy-merge"])
def test_strategies_take_the_file_of_upstream(strategy: UpdateStrategy) -> None:
    sides = [build_package({"s.yaml": text}) for text in (secret(), TWO, secret())]
    result = run_update(sides, strategy=strategy, lock=ResolvedUpstream("r", "d", "v2", "c2"))
    assert read_texts(result.files)["s.yaml"] == TWO


def test_merge_comments_of_kpt_are_not_local_changes() -> None:
    assert list_changed_files(build_tree({"s.yaml": secret()}), build_tree({"s.yaml": COMMENTED})) == ()
    assert list_changed_files(build_tree({"s.yaml": secret()}), build_tree({"s.yaml": TWO})) == ("s.yaml",)
    spaced = secret().replace("metadata:", "metadata: ")
    assert list_changed_files(build_tree({"s.yaml": secret()}), build_tree({"s.yaml": spaced})) == ("s.yaml",)


@pytest.mark.parametrize(
    ("content", "earlier", "expected"),
    [
        (secret(), [secret()], []),
        (secret("one", "b"), [secret()], [("SopsMacSuspect", "/metadata/labels/l")]),
        (secret("one", "b"), [secret(), secret("one", "b")], [("SopsMacSuspect", "/metadata/labels/l")]),
        (secret("one", "b", version=2), [secret()], []),
        (secret("one", "b", "mac_only_encrypted: true"), [secret("one", "a", "mac_only_encrypted: true")], []),
        (secret(), [PLAIN_SECRET], []),
        (secret().replace(ciphertext("one"), "cGxhaW4="), [], [("PlaintextSecret", "/data/p")]),
        (secret().replace(ciphertext("mac1"), '""'), [], [("SopsMacSuspect", "/sops/mac")]),
        (f"{secret()}---\n{PLAIN}", [f"{secret()}---\n{PLAIN}# x\n"], []),
    ],
    ids=["same", "label", "earlier-version", "again", "mac-only", "new", "plaintext", "no-mac", "two-documents"],
)
def test_checks(content: str, earlier: list[str], expected: list[tuple[str, str]]) -> None:
    findings = check_sops_files(build_tree({"s.yaml": content}), [build_tree({"s.yaml": text}) for text in earlier])
    assert [(finding.code, finding.location.pointer) for finding in findings] == expected
    assert all("cGxhaW4" not in finding.message for finding in findings)
