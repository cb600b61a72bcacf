"""The reference page of log events lists exactly the events of the source, with their levels and fields.

The test finds each use of the logger `log` in the syntax tree. A direct call is `log.info("event", field=...)`. A method
that is stored in a variable, such as `emit = log.info if ... else log.warning`, counts for all calls of this variable.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs/reference/log-events.md"
LEVELS = frozenset({"debug", "info", "warning", "error"})
# Members of the logger that log no event.
OTHER_MEMBERS = frozenset({"configure_with", "pass_id", "pass_scope", "request_id", "request_scope", "trace_id"})
NAME = re.compile(r"[a-z]+(_[a-z]+)*\Z")
FORBIDDEN_FIELDS = frozenset({"why", "cluster"})
_EVENT_ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<levels>[\w, ]+) \| .+ \| (?P<fields>.*?) ?\|$", re.MULTILINE)
_FIELD_ROW = re.compile(r"^\| (?P<fields>`\w+`(?:, `\w+`)*) \| [\w ]+ \| .+ \|$", re.MULTILINE)
_PARENT = "parent"


@dataclass(frozen=True)
class Event:
    """An event with its levels and fields. If `has_more` is set, the fields are not complete."""

    name: str
    levels: frozenset[str]
    fields: frozenset[str]
    has_more: bool = False


class UnknownUseError(Exception):
    """The test cannot determine the event of a use of the logger."""


def find_events(source: str, file: str) -> Iterator[Event]:
    """Yield the events of one module."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            setattr(child, _PARENT, node)
    methods: dict[ast.Assign, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            check_import(node, file)
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "log"):
            continue
        parent = getattr(node, _PARENT)
        if node.attr not in LEVELS:
            if node.attr not in OTHER_MEMBERS:
                raise UnknownUseError(f"{file}:{node.lineno}: log.{node.attr}")
        elif isinstance(parent, ast.Call) and parent.func is node:
            yield read_call(parent, {node.attr}, file)
        else:
            methods.setdefault(find_assignment(node, file), set()).add(node.attr)
    for assignment, levels in methods.items():
        yield from find_calls_of_variable(assignment, levels, file)


def check_import(node: ast.ImportFrom | ast.Import, file: str) -> None:
    """Raise UnknownUseError if a module imports the logger under another name."""
    names = {alias.name.rpartition(".")[2]: alias.asname for alias in node.names}
    is_log_module = isinstance(node, ast.ImportFrom) and node.module == "reconciler.telemetry.event_log"
    if "event_log" in names or (is_log_module and names.get("log")):
        raise UnknownUseError(f"{file}:{node.lineno}: {ast.unparse(node)}")


def find_assignment(node: ast.AST, file: str) -> ast.Assign:
    """Return the statement that assigns a method of the logger to a variable."""
    current = node
    while not isinstance(current, ast.stmt):
        current = getattr(current, _PARENT)
    if isinstance(current, ast.Assign) and isinstance(current.targets[0], ast.Name):
        return current
    raise UnknownUseError(f"{file}:{current.lineno}: {ast.unparse(current)}")


def find_calls_of_variable(assignment: ast.Assign, levels: set[str], file: str) -> Iterator[Event]:
    """Yield the events of all calls of a variable in its function: `emit(...)` or `methods[key](...)`."""
    assert isinstance(assignment.targets[0], ast.Name)
    scope: ast.AST = assignment
    while not isinstance(scope, ast.FunctionDef):
        scope = getattr(scope, _PARENT)
    value = 0
    for node in ast.walk(scope):
        if isinstance(node, ast.Call):
            function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            if isinstance(function, ast.Name) and function.id == assignment.targets[0].id:
                yield read_call(node, levels, file)
                value += 1
    if not value:
        raise UnknownUseError(f"{file}:{assignment.lineno}: {ast.unparse(assignment)}")


def read_call(call: ast.Call, levels: set[str], file: str) -> Event:
    """Return the event of a call."""
    name = call.args[0] if len(call.args) == 1 else None
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        raise UnknownUseError(f"{file}:{call.lineno}: {ast.unparse(call)}")
    # structlog replaces `exc_info` by the traceback in the field `exception`.
    fields = {"exception" if keyword.arg == "exc_info" else keyword.arg for keyword in call.keywords if keyword.arg}
    has_more = any(keyword.arg is None for keyword in call.keywords)
    return Event(name.value, frozenset(levels), frozenset(fields), has_more)


def merge(events: Iterator[Event]) -> dict[str, Event]:
    """Return one entry per name with the levels and fields of all calls."""
    merged: dict[str, Event] = {}
    for event in events:
        known = merged.get(event.name, event)
        merged[event.name] = Event(
            event.name, known.levels | event.levels, known.fields | event.fields, known.has_more or event.has_more
        )
    return merged


def find_events_of_project() -> dict[str, Event]:
    files = sorted((PROJECT / "reconciler").rglob("*.py"))
    texts = {file: file.read_text() for file in files}
    importing = {file: text for file, text in texts.items() if "event_log" in text or file.name == "event_log.py"}
    return merge(
        event for file, text in importing.items() for event in find_events(text, str(file.relative_to(PROJECT)))
    )


def read_page(text: str) -> dict[str, Event]:
    """Return the events in the tables of the page."""
    return merge(
        Event(
            row["name"],
            frozenset(row["levels"].split(", ")),
            frozenset(re.findall(r"`(\w+)`", row["fields"])),
        )
        for row in _EVENT_ROW.finditer(text)
        if set(row["levels"].split(", ")) <= LEVELS
    )


def find_differences(source: dict[str, Event], page: dict[str, Event]) -> list[str]:
    """Return a message for each difference between the source and the page."""
    messages = [f"{name}: missing on the page" for name in sorted(source.keys() - page.keys())]
    messages += [f"{name}: no call in the source" for name in sorted(page.keys() - source.keys())]
    for name in sorted(source.keys() & page.keys()):
        event, row = source[name], page[name]
        if event.levels != row.levels:
            messages.append(f"{name}: levels {sorted(event.levels)} in the source, {sorted(row.levels)} on the page")
        if missing := event.fields - row.fields:
            messages.append(f"{name}: fields missing on the page: {sorted(missing)}")
        if not event.has_more and (unknown := row.fields - event.fields):
            messages.append(f"{name}: fields not in the source: {sorted(unknown)}")
    return messages


def test_the_page_lists_exactly_the_events_of_the_source() -> None:
    assert find_differences(find_events_of_project(), read_page(PAGE.read_text())) == []


def find_emitted_events(source: str) -> Iterator[str]:
    """Yield the events of all markers `emits` in a test module. A test with this marker fails without these events."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.emits":
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


def test_tests_emit_exactly_the_events_of_the_page() -> None:
    modules = [file.read_text() for file in sorted((PROJECT / "tests").rglob("test_*.py"))]
    emitted = {event for text in modules if "mark.emits" in text for event in find_emitted_events(text)}

    assert emitted == read_page(PAGE.read_text()).keys()


def test_only_the_event_log_uses_structlog() -> None:
    files = [file for file in (PROJECT / "reconciler").rglob("*.py") if "get_logger" in file.read_text()]

    assert [file.name for file in files] == ["event_log.py"]


def test_names_and_fields_follow_the_rules() -> None:
    events = read_page(PAGE.read_text()).values()

    assert [event.name for event in events if not NAME.match(event.name)] == []
    assert [event.name for event in events if event.fields & FORBIDDEN_FIELDS] == []


def test_the_page_describes_each_field() -> None:
    for section in PAGE.read_text().split("\n## "):
        described = {name for row in _FIELD_ROW.finditer(section) for name in re.findall(r"`(\w+)`", row["fields"])}
        for event in read_page(section).values():
            # The first section describes this field for all events.
            assert event.fields - described <= {"message"}, f"{event.name}: describe the fields in a table"


_PAGE_ROWS = """\
| `draft_pushed` | info | A draft was pushed. | `target` |
| `push_failed` | error | A push failed. | |
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param('log.info("draft_pushed", target=a)\nlog.error("push_failed")', [], id="equal"),
        pytest.param('log.info("draft_pushed", target=a)', ["push_failed: no call in the source"], id="removed"),
        pytest.param(
            'log.info("draft_pushed", target=a)\nlog.error("push_failed")\nlog.info("new_event")',
            ["new_event: missing on the page"],
            id="new",
        ),
        pytest.param(
            'log.info("draft_pushed", target=a, head=b)\nlog.error("push_failed")',
            ["draft_pushed: fields missing on the page: ['head']"],
            id="new-field",
        ),
        pytest.param(
            'log.info("draft_pushed")\nlog.error("push_failed")',
            ["draft_pushed: fields not in the source: ['target']"],
            id="removed-field",
        ),
        pytest.param(
            'log.debug("draft_pushed", target=a)\nlog.error("push_failed")',
            ["draft_pushed: levels ['debug'] in the source, ['info'] on the page"],
            id="level",
        ),
        pytest.param(
            'def f():\n    emit = log.info if a else log.info\n    emit("draft_pushed", **b)\nlog.error("push_failed")',
            [],
            id="variable",
        ),
    ],
)
def test_differences_are_found(source: str, expected: list[str]) -> None:
    assert find_differences(merge(find_events(source, "a.py")), read_page(_PAGE_ROWS)) == expected


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("log.info(name)", id="name-from-a-variable"),
        pytest.param("log.info(f'draft_{name}')", id="name-from-an-expression"),
        pytest.param("register(log.info)", id="method-as-an-argument"),
        pytest.param("def f():\n    emit = log.info\n    return emit", id="method-as-a-result"),
        pytest.param("log.exception('failed')", id="unknown-method"),
        pytest.param("from reconciler.telemetry.event_log import log as events", id="other-name"),
        pytest.param("from reconciler.reconcile import event_log", id="module"),
    ],
)
def test_unknown_uses_of_the_logger_are_errors(source: str) -> None:
    with pytest.raises(UnknownUseError):
        list(find_events(source, "a.py"))
