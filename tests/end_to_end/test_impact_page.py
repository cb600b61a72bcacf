"""The CI jobs of the page about impact in pull requests write one comment, and fail after errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.fake_forge.core import FakeForge
from tests.support.fake_forge.server import Answer, ApiRequest, serve

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "report-the-impact-in-pull-requests.md").read_text()
TOKEN = "t0ken"
BODY = '<!-- reconciler impact -->\n# Impact of a → b: "quoted" & `more`\n'


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


class Comments:
    """The comments of one pull request, as GitHub and GitLab serve them: in pages, and only with the token."""

    def __init__(self, folder: Path, number: int) -> None:
        self.forge = FakeForge(folder, lambda: 0)
        self.bodies = {index: f"comment {index}" for index in range(number)}

    def answer(self, requests: ApiRequest) -> Answer:
        if TOKEN not in (
            requests.headers.get("private-token"),
            requests.headers.get("authorization", "").removeprefix("Bearer "),
        ):
            return Answer(401)
        match requests.method:
            case "GET":
                start = (int(requests.query["page"]) - 1) * int(requests.query["per_page"])
                listed = [{"id": key, "body": body} for key, body in self.bodies.items()]
                return Answer(200, listed[start : start + int(requests.query["per_page"])])
            case "POST":
                self.bodies[len(self.bodies)] = json.loads(requests.body)["body"]
                return Answer(201, {})
            case "PATCH" | "PUT":
                self.bodies[int(requests.path.rpartition("/")[2])] = json.loads(requests.body)["body"]
                return Answer(200, {})
        return Answer(405)


def recipe(index: int) -> dict[str, Any]:
    data: dict[str, Any] = parse_yaml(blocks("yaml")[index].encode()).documents[0].data
    return data


def github(url: str) -> tuple[str, Mapping[str, str]]:
    steps = {step.get("name"): step for step in recipe(0)["jobs"]["impact"]["steps"]}
    return steps["Comment"]["run"], {
        "TOKEN": TOKEN, "COMMENTS": f"{url}/repos/acme/config/issues/7/comments",
        "COMMENT": f"{url}/repos/acme/config/issues/comments",
    }  # fmt: skip


def gitlab(url: str) -> tuple[str, Mapping[str, str]]:
    return recipe(1)["impact"]["script"][1], {
        "IMPACT_TOKEN": TOKEN,
        "NOTES": f"{url}/projects/1/merge_requests/7/notes",
    }


@pytest.mark.quick_cases(every=4)
@pytest.mark.skipif(not (which("curl") and which("jq")), reason="the recipes call curl and jq, which are not here")
@pytest.mark.parametrize("host", [github, gitlab])
@pytest.mark.parametrize("number", [0, 120])
def test_a_recipe_comments_once_and_brings_its_comment_up_to_date(host: Any, number: int, tmp_path: Path) -> None:
    comments = Comments(tmp_path, number)
    with serve(comments) as url:
        script, names = host(url)
        for body in (BODY, BODY + "and more\n"):
            (tmp_path / "impact.md").write_text(body)
            subprocess.run(
                ["bash", "-euc", script], cwd=tmp_path, env={"PATH": os.environ["PATH"], **names}, check=True
            )

    assert list(comments.bodies.values()) == [*(f"comment {index}" for index in range(number)), BODY + "and more\n"]


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (1, 0), (2, 0), (3, 3), (70, 70)])
def test_a_recipe_goes_on_after_what_is_for_people_and_stops_where_nothing_is_known(
    status: int, ends: int, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "reconciler"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho received "$2"\nexit {status}\n')
    program.chmod(0o755)
    steps = {step.get("name"): step for step in recipe(0)["jobs"]["impact"]["steps"]}
    files = {
        name: str(tmp_path / name)
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "RECONCILER_GIT__CREDENTIALS_FILE")
    }
    base = {"PATH": f"{program.parent}:{os.environ['PATH']}", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "abc"}

    values = [
        subprocess.run(["bash", "-euc", script], cwd=tmp_path, env={**base, **more}, check=False).returncode
        for script, more in (
            (steps["Impact"]["run"], {**files, "CREDENTIALS": "https://a:b@c"}),
            (recipe(1)["impact"]["script"][0], {}),
        )
    ]

    assert values == [ends, ends]
    assert Path(files["GITHUB_STEP_SUMMARY"]).read_text() == "received HEAD^1..HEAD\n"
    assert Path(files["RECONCILER_GIT__CREDENTIALS_FILE"]).stat().st_mode & 0o077 == 0
    assert (tmp_path / "impact.md").read_text() == "received abc..HEAD\n"


def test_the_recipes_ask_for_what_they_need_and_no_more() -> None:
    github_job, gitlab_job = recipe(0), recipe(1)["impact"]

    assert github_job["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert gitlab_job["variables"]["GIT_DEPTH"] == "0"
    assert "pull_request_target" not in PAGE
