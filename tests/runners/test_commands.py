"""Commands run if the settings list them, with a clean environment. Their failures differ from interruptions."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.function import FunctionOutput, InterruptedFunctionError
from reconciler.packages.functions.registry import FunctionMatch, FunctionUnavailable
from tests.runners.programs import BOUNDS, Clock, call, command, editing, functions, program
from tests.unit.packages.builders import format_items, list_messages

ONE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a # the name\ndata:\n  k: v # the value\n"


def run(path: Path, source: str, *arguments: str, **fields: object) -> FunctionOutput:
    """Call a program on one resource."""
    program(path / "fn", source)
    bounds = replace(BOUNDS, **fields)  # type: ignore[arg-type]
    return call(functions((f"{path}/*",), bounds=bounds).find(command(path / "fn", *arguments)), ONE)


def test_a_command_edits_resources(tmp_path: Path) -> None:
    output = run(tmp_path, editing("rl['items'][0]['data']['k'] = sys.argv[1]"), "'a b'")

    assert not output.has_failed
    assert format_items(output.items) == ONE.replace("k: v", "k: a b")


@pytest.mark.parametrize(
    ("pattern", "written", "runs"),
    [
        pytest.param("{}/fn", "{}/fn", True, id="itself"),
        pytest.param("{}/*", "{}/fn -x", True, id="a-glob"),
        pytest.param("{}/f?", "{}/fn", True, id="one-character"),
        pytest.param("{}/gn", "{}/fn", False, id="another"),
        pytest.param("{}/f", "{}/fn", False, id="the-beginning-is-not-enough"),
        pytest.param("/*", "{}/fn", False, id="a-star-stays-in-its-folder"),
        pytest.param("{}/*", "{}/sub/../fn", False, id="dots"),
        pytest.param("{}/sub/*", "{}/sub/../fn", False, id="dots-that-leave-a-listed-folder"),
        pytest.param("{}/*", "{}/./fn", False, id="a-dot"),
        pytest.param("{}/*", "fn", False, id="no-path"),
        pytest.param("{}/*", "/bin/sh -c {}/fn", False, id="as-an-argument"),
    ],
)
def test_only_listed_commands_run(tmp_path: Path, pattern: str, written: str, *, runs: bool) -> None:
    program(tmp_path / "fn", editing(""))
    (tmp_path / "sub").mkdir()

    result = functions((pattern.format(tmp_path),)).find(FunctionSpec(exec=written.format(tmp_path)))

    assert isinstance(result, FunctionMatch) is runs


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        pytest.param(
            "touch pwned",
            'the program "touch" is not allowed; add its absolute path to the setting `functions.exec`',
            id="unlisted",
        ),
        pytest.param("'open", "the command cannot be split into shell words: No closing quotation", id="quotes"),
        pytest.param(
            "''", 'the program "" is not allowed; add its absolute path to the setting `functions.exec`', id="nothing"
        ),
        pytest.param("{}/none", "{}/none is not an executable file", id="not-there"),
        pytest.param("{}/plain", "{}/plain is not an executable file", id="not-executable"),
    ],
)
def test_why_nothing_runs(tmp_path: Path, written: str, reason: str) -> None:
    (tmp_path / "plain").write_text("x")

    result = functions((f"{tmp_path}/*",)).find(FunctionSpec(exec=written.format(tmp_path)))

    assert isinstance(result, FunctionUnavailable)
    assert result.reason == reason.format(tmp_path)


def test_a_command_has_a_clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    text = "import json, os\nrl['results'] = [{'message': json.dumps([dict(os.environ), os.getcwd(), os.listdir()])}]"

    ((_, message),) = list_messages(run(tmp_path, editing(text)))

    environment, folder, files = eval(message)
    assert environment == {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": folder, "TMPDIR": folder,
    }  # fmt: skip
    assert files == []
    assert not Path(folder).exists()


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    output = run(tmp_path, editing("rl['results'] = [{'message': ' '.join(sys.argv[1:])}]"), "'$(id)'", "';'", "x")

    assert list_messages(output) == [("info", "$(id) ; x")]


def test_results_of_a_failure_are_kept(tmp_path: Path) -> None:
    output = run(tmp_path, editing("rl['results'] = [{'message': 'no', 'severity': 'error'}]") + "sys.exit(3)")

    assert (output.has_failed, output.exit_code, list_messages(output)) == (True, 3, [("error", "no")])


@pytest.mark.parametrize(
    ("source", "fields", "error"),
    [
        pytest.param("import sys; sys.exit('no such thing')", {}, "exit code 1: no such thing", id="words"),
        pytest.param("import os; os.kill(os.getpid(), 11)", {}, "exit code 139", id="a-crash"),
        pytest.param("print('hello')", {}, "ResourceList of config.kubernetes.io/v1: it must be a mapping", id="prose"),
        pytest.param("pass", {}, "it must contain one document, but cont", id="nothing"),
        pytest.param("print('kind: List\\napiVersion: v1')", {}, ' is "v1 List"', id="a-list"),
        pytest.param(
            "while True: print('x' * 10**6)",
            {},
            "the output of the function must not be larger than 1000000 bytes",
            id="a-flood",
        ),
        pytest.param("bytearray(300_000_000)", {"memory_bytes": 200_000_000}, "MemoryError", id="memory"),
        pytest.param("open('f', 'wb').write(bytes(2_000_000))", {}, "File too large", id="a-large-file"),
        pytest.param(
            editing("rl['items'] = [rl['items'][0]]; rl['items'].append(rl['items'])"), {}, "alias", id="a-loop"
        ),
    ],
)
def test_failures_of_the_function(tmp_path: Path, source: str, fields: dict[str, int], error: str) -> None:
    output = run(tmp_path, source, **fields)

    assert output.has_failed
    assert error in output.error
    assert format_items(output.items) == ONE


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("import time; time.sleep(60)", "took longer than 0.5 seconds and was killed", id="time-out"),
        pytest.param("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL", id="kill"),
        pytest.param("import os; os.kill(os.getpid(), 15)", "was killed by SIGTERM", id="term"),
    ],
)
def test_failures_of_the_environment(tmp_path: Path, source: str, words: str) -> None:
    with pytest.raises(InterruptedFunctionError, match=words):
        run(tmp_path, source, seconds=0.5)


def test_only_an_interrupted_call_has_a_back_off(tmp_path: Path) -> None:
    slow = program(tmp_path / "slow", "import time; time.sleep(60)")
    quick = program(tmp_path / "quick", editing(""))
    clock = Clock()
    provider = functions((f"{tmp_path}/*",), bounds=replace(BOUNDS, seconds=1), clock=clock)
    values = []
    for _ in range(2):
        with pytest.raises(InterruptedFunctionError) as error:
            call(provider.find(command(slow)), ONE)
        values.append(str(error.value))
        program(slow, editing(""))

    assert values[0] == values[1], "the second one was not made"
    assert not call(provider.find(command(quick)), ONE).has_failed
    assert not call(provider.find(command(slow)), ONE + "---\n" + ONE).has_failed, "another input is another call"
    clock.now += 6
    assert not call(provider.find(command(slow)), ONE).has_failed


def test_a_changed_program_is_another(tmp_path: Path) -> None:
    path = program(tmp_path / "fn", editing(""))
    provider = functions((str(path),))
    first = provider.find(command(path, "--x"))
    assert isinstance(first, FunctionMatch)
    name = f"function exec {path}%20--x"

    assert provider.identity(name) == first.identity
    before = provider.digest()
    program(path, editing("# changed"))
    assert provider.digest() == before, "a pass looks once"
    provider.refresh()
    assert provider.digest() != before
    assert provider.identity(name) != first.identity
    path.unlink()
    provider.refresh()
    assert provider.identity(name) == "absent"


def test_nothing_asked_by_a_foreign_hand_runs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    provider = functions()

    for name in ("function exec /bin/sh", "function", "function image", f"function exec {tmp_path}/pipe", ""):
        assert provider.identity(name) == "absent"
