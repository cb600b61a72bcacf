"""Tests of finding and running programs: folders, environment, input files, limits and sandbox."""

from __future__ import annotations

import hashlib
import socket
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.processes.process import ProcessLimits, ProcessTimeoutError
from reconciler.sources import programs
from reconciler.sources.programs import ProgramFinder, ProgramRunner, SandboxMode, SandboxUnavailableError

LIMITS = ProcessLimits(30, 1 << 29, 100_000)


def write_program(path: Path, source: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable} -IS\n{dedent(source)}")
    path.chmod(0o755)
    return path


def run(tmp_path: Path, source: str, limits: ProcessLimits = LIMITS, sandbox: SandboxMode = "auto") -> str:
    program = write_program(tmp_path / "program", source)
    inputs = {"chart": FileTree({"a/b.txt": File(b"text")}), "values.json": b"{}"}
    result = ProgramRunner(sandbox).run(program, ("argument",), inputs, limits)
    assert result.exit_code == 0, result.stderr
    return result.output.decode()


def test_program_is_found_in_the_first_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PROGRAM_FOLDERS", (tmp_path / "a", tmp_path / "b"))
    finder = ProgramFinder("program-of-test", None, f"{tmp_path}/c:")
    assert finder.find() is None
    assert [*finder.list_candidates()] == [
        folder / "program-of-test"
        for folder in (tmp_path / "a", tmp_path / "b", Path(sys.executable).parent, tmp_path / "c")
    ]

    for name in "cba":
        write_program(tmp_path / name / "program-of-test", name)
        found = finder.find()
        assert found is not None
        assert found.path == tmp_path / name / "program-of-test"


def test_file_that_is_no_program_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("x")
    (tmp_path / "folder").mkdir()

    assert [ProgramFinder("x", tmp_path / name, "").find() for name in ("program", "folder")] == [None, None]


def test_a_file_is_read_again_after_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute_digest, reads = hashlib.file_digest, []
    monkeypatch.setattr(hashlib, "file_digest", lambda *file: reads.append(file) or compute_digest(*file))
    path = write_program(tmp_path / "program", "1")
    first, other = (ProgramFinder("program", path, "").find() for _ in range(2))
    write_program(path, "12")
    changed = ProgramFinder("program", path, "").find()

    assert (first == other, first == changed, len(reads)) == (True, False, 2)


def test_input_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPS_AGE_KEY", "secret")
    source = """
        import os, pathlib, sys
        print(sys.argv[1:], sorted(map(str, pathlib.Path().rglob("*"))), pathlib.Path("chart/a/b.txt").read_text())
        print(sorted(set(os.environ) - {"HTTP_PROXY", "HTTPS_PROXY"}))
        print(os.environ["PATH"], os.environ["TZ"], os.environ["GOMEMLIMIT"], os.environ["HOME"] == os.environ["TMPDIR"])
        pathlib.Path(os.environ["TMPDIR"], "file").write_text("writable")
    """

    lines = run(tmp_path, source).splitlines()

    assert lines[0] == "['argument'] ['chart', 'chart/a', 'chart/a/b.txt', 'values.json'] text"
    assert lines[1] == str(
        sorted([*["LC_ALL", "TZ", "PATH", "HOME", "TMPDIR", "KUBECONFIG", "GOMEMLIMIT", "GOMAXPROCS", "HELM_CACHE_HOME", "HELM_CONFIG_HOME"],
                "HELM_DATA_HOME", "HELM_PLUGINS"])
    )  # fmt: skip
    assert lines[2] == f"/nonexistent UTC {int(LIMITS.memory_bytes * 0.75)} True"


def test_input_is_read_only_and_deleted(tmp_path: Path) -> None:
    source = """
        import os, pathlib
        print(pathlib.Path.cwd(), *(oct(os.stat(path).st_mode & 0o777) for path in (".", "chart/a", "chart/a/b.txt")))
    """

    folder, *modes = run(tmp_path, source).split()

    assert modes == ["0o500", "0o500", "0o400"]
    assert not Path(folder).parent.exists()


def test_missing_file_system_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_TEMPORARY_FILE_SYSTEM", tmp_path / "missing")
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert run(tmp_path, "print('done')") == "done\n"


def test_time_limit(tmp_path: Path) -> None:
    with pytest.raises(ProcessTimeoutError):
        run(tmp_path, "import time; time.sleep(60)", ProcessLimits(0.2, 1 << 29, 1_000))


def test_output_limit(tmp_path: Path) -> None:
    program = write_program(tmp_path / "program", "while True: print('x' * 10_000)")

    result = ProgramRunner("auto").run(program, (), {}, LIMITS)

    assert result.is_too_large
    assert result.output == b""


def test_memory_and_file_limits(tmp_path: Path) -> None:
    source = """
        import os, pathlib, resource
        print(resource.getrlimit(resource.RLIMIT_DATA)[0], resource.getrlimit(resource.RLIMIT_CORE)[0])
        try:
            bytearray(1 << 30)
        except MemoryError:
            print("no memory")
        try:
            pathlib.Path(os.environ["TMPDIR"], "file").write_bytes(bytes(200_000))
        except OSError as error:
            print(error.strerror)
    """

    assert run(tmp_path, source).splitlines() == [f"{LIMITS.memory_bytes} 0", "no memory", "File too large"]


CONNECT = """
    import os, socket
    try:
        socket.create_connection(("127.0.0.1", {port}), 5)
        print("connected")
    except OSError:
        print("refused")
    print(os.environ.get("HTTPS_PROXY"), os.environ.get("HTTP_PROXY"))
"""


def test_sandbox_has_no_network(tmp_path: Path) -> None:
    try:
        ProgramRunner("require").run(Path("/bin/true"), (), {}, LIMITS)
    except SandboxUnavailableError:
        pytest.skip("this kernel does not permit `unshare --user --net`")
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = CONNECT.format(port=server.getsockname()[1])

        assert run(tmp_path, source, sandbox="none").splitlines()[0] == "connected"
        assert run(tmp_path, source).splitlines() == ["refused", "None None"]


@pytest.mark.parametrize("unshare", [None, "/bin/false", "/nonexistent"])
@pytest.mark.emits("sandbox_unavailable")
def test_missing_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unshare: str | None) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: unshare)
    source = "import os; print(os.environ.get('HTTPS_PROXY'), os.environ.get('HTTP_PROXY'))"

    assert run(tmp_path, source) == "http://127.0.0.1:9 http://127.0.0.1:9\n"
    with pytest.raises(SandboxUnavailableError, match=r"sources\.sandbox"):
        run(tmp_path, source, sandbox="require")


def test_path_outside_of_the_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="outside"):
        ProgramRunner("none").run(Path("/bin/true"), (), {"chart": FileTree({"../../x": File(b"")})}, LIMITS)
    assert not (tmp_path.parent / "x").exists()
