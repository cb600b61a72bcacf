"""Push options in the format of the forges. The hooks of real repositories record the received options."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.catalog.files import CommitId
from reconciler.forge.port import NewRequest
from reconciler.forge.push_options import build_agit_push, build_gitlab_push_options
from reconciler.git.mirror import Mirror
from reconciler.git.names import check_push_option
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushDone, PushUnit, RefUpdate
from tests.support.git_repositories import git, make_bare, read_ref, read_refs, write_hook

NEW = NewRequest("drafts/east", "clusters/east", "east: api 1.2", "One change.\n\n- größer", labels=("api", "a b"))
WRITE_OPTIONS = 'n=0; while [ "$n" -lt "${GIT_PUSH_OPTION_COUNT:-0}" ]; do printenv GIT_PUSH_OPTION_$n; n=$((n+1)); done > push_options'
bodies = st.text(st.sampled_from("/\\nx `\n\r\0{}é"), max_size=40) | st.text(max_size=200)


def read_as_gitlab(options: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the options as GitLab parses them: values stripped, a backslash and an `n` for a line break."""
    mapping: dict[str, list[str]] = {}
    for option in options:
        match = re.fullmatch(r"merge_request\.([^=]+)=?(.*)", option)
        assert match is not None, option
        value = match[2].strip()
        mapping.setdefault(match[1], []).append(value.replace("\\n", "\n") if match[1] == "description" else value)
    return mapping


def read_as_gitea(options: tuple[str, ...]) -> dict[str, str]:
    """Return the options as Gitea parses them: the text after `{base64}` is decoded."""
    result = dict(option.split("=", 1) for option in options)
    encoded = "{base64}"
    return {
        key: base64.b64decode(value.removeprefix(encoded), validate=True).decode()
        if value.startswith(encoded)
        else value
        for key, value in result.items()
    }


def open_mirror(tmp_path: Path, remote: Path) -> Mirror:
    mirror = Mirror.open(tmp_path / "cache", str(remote), GitOptions())
    mirror.fetch("target")
    return mirror


def write(mirror: Mirror) -> CommitId:
    return mirror.write_commits([NewCommit((), (PutFile("api.yaml", b"1.2"),), "api 1.2", 1, has_empty_base=True)])[0]


def test_gitlab_hears_a_merge_request_with_the_branch(tmp_path: Path) -> None:
    remote = make_bare(tmp_path / "remote.git", receive__advertisePushOptions="true")
    write_hook(remote, "pre-receive", WRITE_OPTIONS)
    mirror = open_mirror(tmp_path, remote)
    commit, options = write(mirror), build_gitlab_push_options(NEW)

    report = mirror.push([PushUnit("east", (RefUpdate("refs/heads/drafts/east", commit, None),), options)])

    assert report["east"] == PushDone()
    assert tuple((remote / "push_options").read_text("utf-8").splitlines()) == options
    assert read_ref(remote, "refs/heads/drafts/east") == commit
    assert read_as_gitlab(options) == {
        "create": [""],
        "target": ["clusters/east"],
        "title": ["east: api 1.2"],
        "description": ["One change.\n\n- größer"],
        "draft": [""],
        "label": ["api", "a b"],
    }


def test_gitea_hears_a_pull_request_without_any_ref(tmp_path: Path) -> None:
    remote = make_bare(
        tmp_path / "remote.git", receive__advertisePushOptions="true", receive__procReceiveRefs="refs/for"
    )
    hook = Path(__file__).parents[1] / "support" / "agit_hook.py"
    write_hook(remote, "proc-receive", f"exec python3 {hook} ok")
    mirror = open_mirror(tmp_path, remote)
    commit, (ref, options) = write(mirror), build_agit_push(NEW)

    outcome = mirror.push_for_review(commit, ref, options)

    text = "".join(f"[{option}]" for option in options)
    assert outcome == PushDone()
    assert (remote / "reviews").read_text("utf-8") == f"{commit} refs/for/clusters/east {text}\n"
    assert read_refs(remote) == {}
    assert read_as_gitea(options) == {
        "topic": "drafts/east",
        "title": "WIP: east: api 1.2",
        "description": "One change.\n\n- größer",
        "force-push": "true",
    }
    assert not git(mirror.folder, "for-each-ref")


@pytest.mark.parametrize(
    ("new", "gitlab", "gitea"),
    [
        pytest.param(
            replace(NEW, draft=False, labels=()), {"title": ["east: api 1.2"]}, {"title": "east: api 1.2"}, id="ready"
        ),
        pytest.param(
            replace(NEW, title=" two\n lines "),
            {"title": ["two lines"]},
            {"title": "WIP: two lines"},
            id="a-long-title",
        ),
        pytest.param(
            replace(NEW, title="Draft: x"), {"title": ["x"]}, {"title": "WIP: Draft: x"}, id="a-mark-of-one-product"
        ),
        pytest.param(replace(NEW, body="one line"), {}, {"description": "one line"}, id="a-body-of-one-line"),
        pytest.param(
            replace(NEW, title="{base64}eA==", draft=False), {}, {"title": "{base64}eA=="}, id="a-title-like-a-code"
        ),
        pytest.param(
            replace(NEW, body="C:\\new"), {"description": ["C:\new"]}, {"description": "C:\\new"}, id="a-backslash"
        ),
    ],
)
def test_received_options(new: NewRequest, gitlab: dict[str, list[str]], gitea: dict[str, str]) -> None:
    heard, read = read_as_gitlab(build_gitlab_push_options(new)), read_as_gitea(build_agit_push(new)[1])

    assert {key: heard[key] for key in gitlab} == gitlab
    assert {key: read[key] for key in gitea} == gitea
    assert ("draft" in heard) == new.draft


def test_what_is_no_utf8_is_replaced() -> None:
    new = replace(NEW, title="a\udcff", body="b\udcff")

    assert read_as_gitlab(build_gitlab_push_options(new))["description"] == ["b?"]
    assert read_as_gitea(build_agit_push(new)[1])["title"] == "WIP: a?"


def test_an_empty_body_is_left_out() -> None:
    new = replace(NEW, body="\n ")

    assert "description" not in read_as_gitlab(build_gitlab_push_options(new))
    assert "description" not in read_as_gitea(build_agit_push(new)[1])


@pytest.mark.parametrize("unit", ["x", "é", "\n", "/\n", "\\n"])
def test_a_long_text_is_shortened_with_a_mark(unit: str) -> None:
    new = replace(NEW, body=f"a{unit * 80_000}a")

    for options in (build_gitlab_push_options(new), build_agit_push(new)[1]):
        assert all(check_push_option(option) for option in options)
    assert read_as_gitlab(build_gitlab_push_options(new))["description"][0].endswith("…")
    assert read_as_gitea(build_agit_push(new)[1])["description"].endswith("…")


@given(bodies)
@example("/merge")
@example(" /merge")
@example("a\\n/merge")
@example("\0/merge")
@example("\r/merge")
def test_no_body_is_a_command_or_breaks_an_option(body: str) -> None:
    new = replace(NEW, body=body)

    for option in (*build_gitlab_push_options(new), *build_agit_push(new)[1]):
        assert check_push_option(option)
        assert "\0" not in option
    lines = (
        "\n".join(read_as_gitlab(build_gitlab_push_options(new)).get("description", [])).replace("\r", "").split("\n")
    )
    assert not any(line.startswith("/") for line in lines)
    assert read_as_gitea(build_agit_push(new)[1]).get("description", "") == body.replace("\0", "").strip()
