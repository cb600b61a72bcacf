"""A proc-receive hook that accepts AGit pushes as a forge does: it creates no ref and records the requests.

Git runs the hook in the repository. Its argument is the answer: "ok" or the reason of a refusal. The protocol is
"proc-receive" of gitformat-protocol: packets with a length prefix, in sections that end with 0000.
"""

from __future__ import annotations

import sys
from pathlib import Path


def read_section() -> list[str]:
    """Return the packets up to the next flush packet."""
    packets = []
    while (size := int(sys.stdin.buffer.read(4), 16)) > 0:
        packets.append(sys.stdin.buffer.read(size - 4).decode().rstrip("\n"))
    return packets


def write_section(*packets: str) -> None:
    """Write packets and a flush packet."""
    for packet in packets:
        data = packet.encode()
        sys.stdout.buffer.write(b"%04x" % (len(data) + 4) + data)
    sys.stdout.buffer.write(b"0000")
    sys.stdout.buffer.flush()


def main(answer: str) -> None:
    """Answer one push, the same for each of its refs."""
    read_section()
    write_section("version=1\0push-options atomic")
    commands = [line.split(" ") for line in read_section()]
    options = "".join(f"[{option}]" for option in read_section())
    with Path("reviews").open("a") as notes:
        notes.writelines(f"{new} {ref} {options}\n" for _, new, ref in commands)
    write_section(*(f"ok {ref}" if answer == "ok" else f"ng {ref} {answer}" for *_, ref in commands))


if __name__ == "__main__":
    main(sys.argv[1])
