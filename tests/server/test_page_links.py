"""Tests of the URLs of pages of forges: known hosts, hosts of the settings, templates and repositories without pages."""

from __future__ import annotations

import pytest

from reconciler.server.console.page_links import LinkTemplates, PageLinks, find_template_error

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CGIT = LinkTemplates(
    "https://{host}/cgit/{path}/commit/?id={commit}", "https://{host}/cgit/{path}/tree/{file}?id={commit}#n{line}"
)


@pytest.mark.parametrize(
    ("repository", "commit_url", "file_url"),
    [
        pytest.param(
            "https://github.com/acme/fleet.git",
            f"https://github.com/acme/fleet/commit/{COMMIT}",
            f"https://github.com/acme/fleet/blob/{COMMIT}/sets/my%20app.yaml#L7",
            id="github",
        ),
        pytest.param(
            "git@github.com:acme/fleet.git",
            f"https://github.com/acme/fleet/commit/{COMMIT}",
            f"https://github.com/acme/fleet/blob/{COMMIT}/sets/my%20app.yaml#L7",
            id="ssh",
        ),
        pytest.param(
            "ssh://git@gitlab.example.com:2222/a/b/fleet",
            f"https://gitlab.example.com/a/b/fleet/-/commit/{COMMIT}",
            f"https://gitlab.example.com/a/b/fleet/-/blob/{COMMIT}/sets/my%20app.yaml#L7",
            id="gitlab-with-an-ssh-port",
        ),
        pytest.param(
            "https://gitea.example.com:3000/acme/fleet",
            f"https://gitea.example.com:3000/acme/fleet/commit/{COMMIT}",
            f"https://gitea.example.com:3000/acme/fleet/src/commit/{COMMIT}/sets/my%20app.yaml#L7",
            id="gitea-with-a-port",
        ),
        pytest.param(
            "https://codeberg.org/acme/fleet",
            f"https://codeberg.org/acme/fleet/commit/{COMMIT}",
            f"https://codeberg.org/acme/fleet/src/commit/{COMMIT}/sets/my%20app.yaml#L7",
            id="forgejo",
        ),
        pytest.param(
            "https://bitbucket.org/acme/fleet",
            f"https://bitbucket.org/acme/fleet/commits/{COMMIT}",
            f"https://bitbucket.org/acme/fleet/src/{COMMIT}/sets/my%20app.yaml#lines-7",
            id="bitbucket",
        ),
        pytest.param(
            "https://code.example.com/acme/fleet",
            f"https://code.example.com/acme/fleet/-/commit/{COMMIT}",
            f"https://code.example.com/acme/fleet/-/blob/{COMMIT}/sets/my%20app.yaml#L7",
            id="host-of-the-settings",
        ),
        pytest.param(
            "https://git.example.com/acme/fleet",
            f"https://git.example.com/cgit/acme/fleet/commit/?id={COMMIT}",
            f"https://git.example.com/cgit/acme/fleet/tree/sets/my%20app.yaml?id={COMMIT}#n7",
            id="template",
        ),
        pytest.param("http://github.com/acme/fleet", "", "", id="not-encrypted"),
        pytest.param("/srv/git/fleet.git", "", "", id="local"),
        pytest.param("https://user:secret@github.com/acme/fleet", "", "", id="credentials"),
    ],
)
def test_urls_of_a_repository(repository: str, commit_url: str, file_url: str) -> None:
    links = PageLinks(lambda url: "gitlab" if "//code.example.com/" in url else None, CGIT)

    assert links.build_commit_url(repository, COMMIT) == commit_url
    assert links.build_file_url(repository, COMMIT, "sets/my app.yaml", 7) == file_url


def test_without_a_line_the_url_has_no_fragment() -> None:
    url = PageLinks().build_file_url("https://github.com/acme/fleet", COMMIT, "a.yaml")

    assert url == f"https://github.com/acme/fleet/blob/{COMMIT}/a.yaml"


@pytest.mark.parametrize("commit", ["", "main", f"tree:{COMMIT}", COMMIT[:12]])
def test_only_a_commit_id_has_a_page(commit: str) -> None:
    assert PageLinks().build_commit_url("https://github.com/acme/fleet", commit) == ""


def test_an_unknown_host_without_a_template_has_no_page() -> None:
    links = PageLinks()

    assert links.build_commit_url("https://git.example.com/acme/fleet", COMMIT) == ""
    assert links.build_file_url("https://git.example.com/acme/fleet", COMMIT, "a.yaml", 1) == ""


def test_braces_in_a_file_name_are_not_placeholders() -> None:
    url = PageLinks(fallback=CGIT).build_file_url("https://git.example.com/fleet", COMMIT, "{line}.yaml", 1)

    assert url == f"https://git.example.com/cgit/fleet/tree/%7Bline%7D.yaml?id={COMMIT}#n1"


@pytest.mark.parametrize(
    ("template", "has_file", "error"),
    [
        pytest.param("https://{host}/{path}/{file}?id={commit}#n{line}", True, "", id="file"),
        pytest.param("https://{host}/{path}?id={commit}", False, "", id="commit"),
        pytest.param("http://{host}/{path}?id={commit}", False, "must be an https URL", id="not-encrypted"),
        pytest.param("javascript:alert({commit})", False, "must be an https URL", id="script"),
        pytest.param("https://{host}/{path}", False, "must contain {commit}", id="no-commit"),
        pytest.param("https://{host}/{commit}", True, "must contain {file}", id="no-file"),
        pytest.param("https://{host}/{commit}/{file}", False, "must not contain {file}; allowed placeholders: {host}", id="file-of-a-commit"),
        pytest.param("https://{host}/{sha}", False, "must not contain {sha}", id="unknown"),
    ],
)  # fmt: skip
def test_errors_of_templates(template: str, has_file: bool, error: str) -> None:
    found = find_template_error(template, has_file=has_file)

    assert found.startswith(error)
    assert bool(found) == bool(error)


@pytest.mark.parametrize(
    ("repository", "url"),
    [
        pytest.param("https://github.com/acme/fleet", "https://github.com/acme/fleet/pull/7", id="github"),
        pytest.param(
            "git@gitlab.example.com:acme/fleet.git",
            "https://gitlab.example.com/acme/fleet/-/merge_requests/7",
            id="gitlab",
        ),
        pytest.param("https://codeberg.org/acme/fleet", "https://codeberg.org/acme/fleet/pulls/7", id="forgejo"),
        pytest.param(
            "https://bitbucket.org/acme/fleet", "https://bitbucket.org/acme/fleet/pull-requests/7", id="bitbucket"
        ),
        pytest.param("https://git.example.com/acme/fleet", "", id="unknown-host"),
        pytest.param("/srv/fleet.git", "", id="this-machine"),
    ],
)
def test_pages_of_pull_requests(repository: str, url: str) -> None:
    assert PageLinks().build_pull_request_url(repository, 7) == url
    assert PageLinks().build_pull_request_url(repository, 0) == ""
