"""Tests with worked examples: the result of kpt (compat) and the result of the safe profile."""

from __future__ import annotations

from textwrap import dedent

import pytest

from reconciler.krm.merge3 import COMPAT, SAFE, MergeRules, merge3
from reconciler.krm.merge3.rules import Conflict
from reconciler.krm.schema import load_builtin_merge_schemas
from reconciler.krm.schema.merge_schemas import UNKNOWN_SCHEMA, MergeSchema
from reconciler.krm.yaml import parse_yaml

DEPLOYMENT = load_builtin_merge_schemas().find_schema("apps/v1", "Deployment")
POD_SPEC = load_builtin_merge_schemas().find_schema("v1", "Pod").find_field("spec")
SERVICE_SPEC = load_builtin_merge_schemas().find_schema("v1", "Service").find_field("spec")
METADATA = load_builtin_merge_schemas().find_schema("v1", "ConfigMap").find_field("metadata")


def merge(
    origin: str, updated: str, local: str, shape: MergeSchema = UNKNOWN_SCHEMA, rules: MergeRules = SAFE
) -> tuple[str, tuple[Conflict, ...]]:
    """Merge three texts of one document. Also return the conflicts."""
    document, two, three = (
        parse_yaml(dedent(text).strip("\n") + "\n").documents[0] for text in (origin, updated, local)
    )
    result = merge3(document, two, three, shape, rules)
    return result.document.text.rstrip("\n") if result.document else "", result.conflicts


def dedent_text(text: str) -> str:
    return dedent(text).strip("\n")


def format_conflicts(conflicts: tuple[Conflict, ...]) -> list[str]:
    return [f"{conflict.rule} {conflict.kind} {conflict.pointer} {conflict.chosen}" for conflict in conflicts]


SCALARS = (
    """
    spec:
      replicas: 2
      paused: false
      minReadySeconds: 5
    """,
    """
    spec:
      replicas: 3
      paused: false
      revisionHistoryLimit: 4
    """,
    """
    spec:
      replicas: 7   # sized for site-a
      minReadySeconds: 9
      # keep this
      paused: false
    """,
)

LISTS = (
    """
    containers:
    - name: main
      image: cache:1
      args: [a, b]
      env:
      - {name: LEVEL, value: info}
    """,
    """
    containers:
    - name: main
      image: cache:2
      args: [a, b, c]
      env:
      - {name: LEVEL, value: info}
      - {name: MODE, value: fast}
    - name: exporter
      image: exp:1
    """,
    """
    containers:
    - name: shipper # local sidecar
      image: ship:4
    - name: main
      image: cache:1
      args: [a, z]
      env:
      - {name: LEVEL, value: debug}
      - {name: SITE, value: a}
    """,
)

EDITED_ELEMENT = (
    """
    containers:
    - {name: main, image: "m:1"}
    - name: side
      image: s:1
    """,
    """
    containers:
    - {name: main, image: "m:1"}
    """,
    """
    containers:
    - {name: main, image: "m:1"}
    - name: side
      image: s:9
      tty: true
    """,
)

REMOVED_ELEMENT = (
    """
    containers:
    - name: main
    - name: side
      image: s:1
      args: [x]
    """,
    """
    containers:
    - name: main
    - name: side
      image: s:2
      args: [x]
    """,
    """
    containers:
    - name: main
    """,
)

REPLACED_MAPPING = (
    """
    volumes:
    - name: data
      emptyDir: {}
    """,
    """
    volumes:
    - name: data
      emptyDir: {}
    - name: more
      emptyDir: {}
    """,
    """
    volumes:
    - name: data
      hostPath: {path: /srv}
    """,
)

PORTS = (
    """
    ports:
    - name: http
      port: 80
    """,
    """
    ports:
    - name: http
      port: 80
      protocol: TCP
    """,
    """
    ports:
    - name: http
      port: 80
      nodePort: 31000
    """,
)

COMMENTS = (
    """
    a: "1" # kpt-set: ${a}
    b: two
    c: three
    """,
    """
    # about a
    a: "5" # kpt-set: ${a}
    b: two # new note
    c: four
    # explains d
    d: "9" # kpt-set: ${d}
    """,
    """
    # local note on a
    a: "1" # kpt-set: ${a}
    b: two
    # local note on c
    c: three # tail
    """,
)


@pytest.mark.parametrize(
    ("sides", "shape", "rules", "result", "conflicts"),
    [
        pytest.param(
            SCALARS,
            DEPLOYMENT,
            COMPAT,
            """
            spec:
              replicas: 3
              # keep this
              paused: false
              revisionHistoryLimit: 4
            """,
            ["D2 field /spec/replicas upstream", "D2 field /spec/minReadySeconds upstream"],
            id="8.1-scalars",
        ),
        pytest.param(
            SCALARS,
            DEPLOYMENT,
            SAFE,
            """
            spec:
              replicas: 3   # sized for site-a
              # keep this
              paused: false
              revisionHistoryLimit: 4
            """,
            ["D2 field /spec/replicas upstream", "D2 field /spec/minReadySeconds upstream"],
            id="8.1-safe-keeps-an-unchanged-comment",
        ),
        pytest.param(
            LISTS,
            POD_SPEC,
            COMPAT,
            """
            containers:
            - name: shipper # local sidecar
              image: ship:4
            - name: main
              image: cache:2
              args: [a, b, c]
              env:
              - {name: LEVEL, value: debug}
              - {name: SITE, value: a}
              - name: MODE
                value: fast
            - image: exp:1
              name: exporter
            """,
            ["D2 field /containers/1/args upstream"],
            id="8.2-associative-lists",
        ),
        pytest.param(
            LISTS,
            POD_SPEC,
            SAFE,
            """
            containers:
            - name: shipper # local sidecar
              image: ship:4
            - name: main
              image: cache:2
              args: [a, b, c]
              env:
              - {name: LEVEL, value: debug}
              - {name: SITE, value: a}
              - {name: MODE, value: fast}
            - name: exporter
              image: exp:1
            """,
            ["D2 field /containers/1/args upstream"],
            id="8.2-safe-keeps-new-elements-unchanged",
        ),
        pytest.param(
            ("tolerations: [{key: a}]", "tolerations: [{key: a}, {key: b}]", "tolerations: [{key: a}, {key: site}]"),
            POD_SPEC,
            COMPAT,
            "tolerations: [{key: a}, {key: b}]",
            ["D2 field /tolerations upstream"],
            id="8.3-atomic-list-without-keys",
        ),
        pytest.param(
            ("peers: [{name: a}]", "peers: [{name: a}, {name: b}]", "peers: [{name: a}, {name: site}]"),
            UNKNOWN_SCHEMA,
            COMPAT,
            "peers: [{name: a}, {name: b}]",
            ["D2 field /peers upstream"],
            id="8.3-named-elements-of-an-unknown-kind",
        ),
        pytest.param(
            ("peers: [{name: a}]", "peers: [{name: a}, {name: b}]", "peers: [{name: a}, {name: site}]"),
            UNKNOWN_SCHEMA,
            SAFE,
            "peers: [{name: a}, {name: site}, {name: b}]",
            [],
            id="8.3-safe-goes-by-name",
        ),
        pytest.param(
            EDITED_ELEMENT,
            POD_SPEC,
            COMPAT,
            """
            containers:
            - {name: main, image: "m:1"}
            - name: side
              tty: true
            """,
            ["D2 field /containers/1/image upstream"],
            id="8.4-removed-upstream-edited-locally",
        ),
        pytest.param(
            EDITED_ELEMENT,
            POD_SPEC,
            SAFE,
            EDITED_ELEMENT[2],
            ["D3 element /containers/1 local"],
            id="8.4-safe-keeps-the-element",
        ),
        pytest.param(
            REMOVED_ELEMENT,
            POD_SPEC,
            COMPAT,
            """
            containers:
            - name: main
            - image: s:2
              name: side
            """,
            ["D2 field /containers/1/image upstream"],
            id="8.5-removed-locally-changed-upstream",
        ),
        pytest.param(
            REMOVED_ELEMENT,
            POD_SPEC,
            SAFE,
            REMOVED_ELEMENT[2],
            ["D4 element /containers/1 local"],
            id="8.5-safe-lets-it-stay-removed",
        ),
        pytest.param(
            REPLACED_MAPPING,
            POD_SPEC,
            COMPAT,
            """
            volumes:
            - name: data
              hostPath: {path: /srv}
              emptyDir: {}
            - emptyDir: {}
              name: more
            """,
            [],
            id="8.6-the-mapping-comes-back",
        ),
        pytest.param(
            REPLACED_MAPPING,
            POD_SPEC,
            SAFE,
            """
            volumes:
            - name: data
              hostPath: {path: /srv}
            - name: more
              emptyDir: {}
            """,
            [],
            id="8.6-safe-lets-it-stay-removed",
        ),
        pytest.param(
            PORTS,
            SERVICE_SPEC,
            COMPAT,
            """
            ports:
            - name: http
              port: 80
              nodePort: 31000
            - name: http
              port: 80
              protocol: TCP
            """,
            [],
            id="8.7-two-entries-for-one-port",
        ),
        pytest.param(
            PORTS,
            SERVICE_SPEC,
            SAFE,
            """
            ports:
            - name: http
              port: 80
              protocol: TCP
              nodePort: 31000
            """,
            [],
            id="8.7-safe-uses-the-default-protocol",
        ),
        pytest.param(
            COMMENTS,
            UNKNOWN_SCHEMA,
            COMPAT,
            """
            # local note on a
            a: "5" # kpt-set: ${a}
            b: two
            # local note on c
            c: four
            # explains d
            d: "9" # kpt-set: ${d}
            """,
            [],
            id="8.8-comments",
        ),
        pytest.param(
            COMMENTS,
            UNKNOWN_SCHEMA,
            SAFE,
            """
            # local note on a
            a: "5" # kpt-set: ${a}
            b: two # new note
            # local note on c
            c: four # tail
            # explains d
            d: "9" # kpt-set: ${d}
            """,
            [],
            id="8.8-safe-merges-comments",
        ),
        pytest.param(
            ("finalizers: [a, b]", "finalizers: [b, c]", "finalizers: [a, b, z]"),
            METADATA,
            COMPAT,
            "finalizers: [b, z, c]",
            [],
            id="8.11-a-set",
        ),
    ],
)
def test_worked_example(
    sides: tuple[str, str, str], shape: MergeSchema, rules: MergeRules, result: str, conflicts: list[str]
) -> None:
    text, actual_conflicts = merge(*sides, shape, rules)

    assert text == dedent_text(result)
    assert format_conflicts(actual_conflicts) == conflicts


@pytest.mark.parametrize(
    ("sides", "as_kpt", "safely"),
    [
        pytest.param(("a: 1", "a: null", "a: 5"), "{}", "a: null", id="made-null-upstream"),
        pytest.param(("a: 1", "a: 2", "a: null"), "{}", "a: 2", id="made-null-locally"),
        pytest.param(("a: null", "a: x", "a: null"), "a: x", "a: x", id="no-longer-null"),
        pytest.param(("a: null", "a: null", "a: null"), "{}", "a: null", id="null-everywhere"),
        pytest.param(("b: 1", "b: 1", "b: 1\nz: null"), "b: 1", "b: 1\nz: null", id="null-on-one-side"),
        pytest.param(("a: null\nb: 1", "a: null\nb: 2", "b: 1"), "b: 2", "b: 2", id="a-null-removed-locally"),
        pytest.param(("a: null\nb: 1", "b: 2", "a: null\nb: 1"), "b: 2", "b: 2", id="a-null-removed-upstream"),
    ],
)
def test_null_values(sides: tuple[str, str, str], as_kpt: str, safely: str) -> None:
    compat, safe = merge(*sides, rules=COMPAT), merge(*sides)

    assert (compat[0], safe[0]) == (as_kpt, safely)
