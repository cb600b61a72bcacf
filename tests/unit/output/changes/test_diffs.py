from __future__ import annotations

import pytest

from reconciler.catalog.files import File
from reconciler.output.changes.diffs import format_file_diffs
from tests.support.sops import ciphertext
from tests.unit.output.builders import build_tree, format_endpoints, format_secret

WITH_COMMENT = "# was hunter1\n" + format_secret("{}")


def format_diffs(before: dict[str, str | bytes | File], after: dict[str, str | bytes | File], **options: int) -> str:
    return "".join(diff for _, diff in format_file_diffs(build_tree(before), build_tree(after), "gw", **options))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": "x\n"}, {"a": "x\n"}, "", id="equal-files-have-none"),
        pytest.param(
            {"a": "1\n2\n"},
            {"a": "1\n3\n"},
            "--- a/gw/a\n+++ b/gw/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n",
            id="a-line",
        ),
        pytest.param({}, {"a": "1\n"}, "--- /dev/null\n+++ b/gw/a\n@@ -0,0 +1 @@\n+1\n", id="a-new-file"),
        pytest.param({"a": "1\n"}, {}, "--- a/gw/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n", id="a-file-that-went"),
        pytest.param(
            {"a": "1\n"}, {"a": "1\r\n"}, "--- a/gw/a\n+++ b/gw/a\n(only line endings differ)\n", id="only-line-ends"
        ),
        pytest.param(
            {"a": b"\0\1"}, {"a": b"\0\2"}, "--- a/gw/a\n+++ b/gw/a\n(binary, not shown)\n", id="binary-is-only-named"
        ),
        pytest.param(
            {}, {"a": "x\n" * 6_000}, "--- /dev/null\n+++ b/gw/a\n(too large to show)\n", id="huge-is-only-named"
        ),
        pytest.param(
            {},
            {"a": "\x1b[2J\tx\n"},
            "--- /dev/null\n+++ b/gw/a\n@@ -0,0 +1 @@\n+\\x1b[2J\tx\n",
            id="no-escape-gets-out",
        ),
        pytest.param({"a": File(b"x")}, {"a": File(b"x", executable=True)}, "", id="a-mode-has-no-lines"),
        pytest.param(
            {"a.yaml": f"a: {ciphertext('a')}\nb: {ciphertext('b')}\n"},
            {"a.yaml": f"a: {ciphertext('a')}\nb: {ciphertext('c')}\n"},
            "--- a/gw/a.yaml\n+++ b/gw/a.yaml\n@@ -1,2 +1,2 @@\n a: ENC[…]\n-b: ENC[…]\n+b: ENC[…]\n",
            id="ciphertexts-are-hidden",
        ),
        pytest.param(
            {"a.env": f"A={ciphertext('a')}\n"},
            {"a.env": f"A={ciphertext('b')}\n"},
            "--- a/gw/a.env\n+++ b/gw/a.env\n@@ -1 +1 @@\n-A=ENC[…]\n+A=ENC[…]\n",
            id="ciphertexts-in-other-files",
        ),
    ],
)
def test_diffs(before: dict[str, str | bytes | File], after: dict[str, str | bytes | File], expected: str) -> None:
    assert format_diffs(before, after) == expected


def test_long_diff_is_truncated_and_the_omitted_lines_are_counted() -> None:
    assert format_diffs({}, {"a": "x\n" * 10}, max_lines=5) == (
        "--- /dev/null\n+++ b/gw/a\n@@ -0,0 +1,10 @@\n+x\n+x\n(8 more lines)\n"
    )


def test_diff_of_a_secret_omits_values_and_comments_but_marks_changes() -> None:
    before = {"a.yaml": WITH_COMMENT.format("hunter2") + "  user: me\n---\n" + format_endpoints("a")}
    after = {"a.yaml": WITH_COMMENT.format("hunter3") + "  user: me\n---\n" + format_endpoints("b")}

    assert format_diffs(before, after) == (
        "--- a/gw/a.yaml\n"
        "+++ b/gw/a.yaml\n"
        "@@ -3,7 +3,7 @@\n"
        " metadata:\n"
        "   name: login\n"
        " stringData:\n"
        '-  password: "*****"\n'
        '+  password: "***** (changed)"\n'
        '   user: "*****"\n'
        " ---\n"
        " apiVersion: v1\n"
        "@@ -11,4 +11,4 @@\n"
        " metadata:\n"
        "   name: endpoints\n"
        " data:\n"
        "-  api: a\n"
        "+  api: b\n"
    )


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param("a.yaml", format_secret("{}"), id="yaml"),
        pytest.param("a.json", '{{"apiVersion": "v1", "kind": "Secret", "data": {{"p": "{}"}}}}', id="json"),
        pytest.param("a.yaml", "kind: List\nitems:\n- kind: Secret\n  data: {{p: {}}}\n", id="in-a-list"),
        pytest.param("a.yaml", "m: |\n  kind: Secret\n  data: {{p: {}}}\n", id="as-a-text-in-yaml"),
        pytest.param("a.yaml", "kind: Secret\ndata: [{}\n", id="in-yaml-that-does-not-parse"),
        pytest.param("NOTES.md", "kind: Secret\ndata: {{p: {}}}\n", id="in-a-file-that-is-no-yaml"),
        pytest.param("a.yaml", "a: 1\n# kind: Secret\n# data: {{p: {}}}\n", id="commented-out"),
        pytest.param("a.yaml", "kind: 'Secret'\ndata: {{p: {}}}\n", id="quoted"),
        pytest.param("a.yaml", '"kind": "\\x53ecret"\ndata: {{p: {}}}\n', id="spelt-with-an-escape"),
    ],
)
def test_diff_contains_no_secret_values(path: str, content: str) -> None:
    assert "hunter" not in format_diffs({path: content.format("hunter1")}, {path: content.format("hunter2")})


def test_diff_contains_no_credentials_of_urls() -> None:
    before = "upstream: {git: {repo: 'https://robot:ses/ame@git.example/x.git'}}\n"

    ((_, diff),) = format_file_diffs(build_tree({"Kptfile": before}), build_tree({"Kptfile": "upstream: {}\n"}))

    assert "-upstream: {git: {repo: 'https://git.example/x.git'}}\n" in diff
