from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.objects import ObjectKey
from reconciler.output.findings.code_scanning import quote_uri_path
from reconciler.output.status.config_statuses import get_object_path


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(
            ObjectKey("x", "PackageVariant", "default", "web"), "objects/default/PackageVariant/web.yaml", id="plain"
        ),
        pytest.param(ObjectKey("x", "Cluster", "", "c1"), "objects/_cluster/Cluster/c1.yaml", id="without-a-namespace"),
        pytest.param(ObjectKey("x", "K", "n", "../../etc"), "objects/n/K/%2E.%2F..%2Fetc.yaml", id="no-way-out"),
        pytest.param(ObjectKey("x", "K", "..", "a"), "objects/%2E./K/a.yaml", id="no-way-up"),
        pytest.param(ObjectKey("x", "K", ".git", "a"), "objects/%2Egit/K/a.yaml", id="nothing-hidden"),
        pytest.param(
            ObjectKey("x", "K", "n", "a:b%c"), "objects/n/K/a%3Ab%25c.yaml", id="what-some-file-systems-refuse"
        ),
    ],
)
def test_path_of_an_object(key: ObjectKey, expected: str) -> None:
    assert get_object_path(key) == expected


@given(st.tuples(st.text(min_size=1), st.text(min_size=1)), st.tuples(st.text(min_size=1), st.text(min_size=1)))
def test_different_objects_have_different_paths_inside_the_folder(one: tuple[str, str], other: tuple[str, str]) -> None:
    paths = {get_object_path(ObjectKey("x", "K", *names)) for names in (one, other)}

    assert len(paths) == len({one, other})
    assert all(path.count("/") == 3 and "/." not in path for path in paths)


def test_path_as_uri() -> None:
    assert quote_uri_path("a b/ü~c#1.yaml") == "a%20b/%C3%BC~c%231.yaml"
