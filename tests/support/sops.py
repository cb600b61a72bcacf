"""Documents that SOPS encrypts with a key of this test run, and documents with the same structure from text."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.programs import find_program

MAC_ONLY = "--mac-only-encrypted"
SECRET_FIELDS = ("--encrypted-regex", "^(data|stringData)$")
SECRET = """\
apiVersion: v1
kind: Secret
metadata:
  name: db   # the main database
  namespace: shop
  labels:
    app: shop
stringData:
    user: admin
    password: "hunter2-hunter2"
"""


@dataclass(frozen=True)
class SopsKey:
    """An age key. `encrypt` and `decrypt` run SOPS in the folder of the key."""

    folder: Path
    recipient: str

    def encrypt(self, text: str, *options: str, suffix: str = ".yaml") -> str:
        """Return the text after its encryption."""
        result = self._run("--encrypt", text, suffix, "--age", self.recipient, *options)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def decrypt(self, text: str, suffix: str = ".yaml") -> str:
        """Return the decrypted text, or the error of SOPS."""
        result = self._run("--decrypt", text, suffix)
        return result.stdout if result.returncode == 0 else f"error: {result.stderr}"

    def rotate(self, text: str, suffix: str = ".yaml") -> str:
        """Return the text after its encryption with a new data key."""
        result = self._run("--rotate", text, suffix)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def _run(self, action: str, text: str, suffix: str, *options: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / f"input{suffix}"
        path.write_bytes(text.encode())
        environment = {"SOPS_AGE_KEY_FILE": str(self.folder / "key.txt"), "HOME": str(self.folder)}
        command_line = [find_program("sops"), action, *options, str(path)]
        result = subprocess.run(command_line, capture_output=True, env=environment, check=False, timeout=60)
        return subprocess.CompletedProcess(
            command_line, result.returncode, result.stdout.decode(), result.stderr.decode()
        )


def make_sops_key(folder: Path) -> SopsKey:
    """Create an age key in a folder. Skip the test if SOPS or age is not installed."""
    find_program("sops")
    path = folder / "key.txt"
    subprocess.run([find_program("age-keygen"), "-o", str(path)], capture_output=True, check=True, timeout=60)
    match = re.search(r"public key: (\S+)", path.read_text())
    assert match
    return SopsKey(folder, match[1])


def ciphertext(name: str, kind: str = "str") -> str:
    """Return a text with the format of a ciphertext. Different names give different texts."""
    return f"ENC[AES256_GCM,data:{name}==,iv:aXY=,tag:dGFn,type:{kind}]"


def seal_text(text: str, *rules: str, version: int = 1) -> str:
    """Return a document with the field `sops`. `rules` are lines in this field, and `version` is its age."""
    lines = [
        "sops:",
        "    age: []",
        f'    lastmodified: "2026-11-0{version}T10:00:00Z"',
        f"    mac: {ciphertext(f'mac{version}')}",
        *(f"    {rule}" for rule in rules),
        "    version: 3.11.0",
    ]
    return text.rstrip("\n") + "\n" + "\n".join(lines) + "\n"
