"""What is in a session store, read by the description of docs/snapshots.md."""

import os
import re
import struct

HEADER = struct.Struct("<8sII16sqqIIIIIIQQQ")
ENTRY = struct.Struct("<iiqqqQ")
TOKENS = 1


def entries_of(folder):
    """Tokens of each entry, by its name."""
    found = {}
    for name in os.listdir(folder):
        if not re.fullmatch(r"\d{9}-[0-9a-f]{32}\.plumb-session", name):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            raw = file.read()
        magic, *_, size, length, _, _, _, _, _, sections, _, _, _ = HEADER.unpack_from(raw)
        assert magic == b"PLUMBSNP" and size == len(raw) and length == int(name[:9]), name
        tables = (ENTRY.unpack_from(raw, HEADER.size + ENTRY.size * i) for i in range(sections))
        offset, = (offset for kind, _, _, offset, _, _ in tables if kind == TOKENS)
        found[name] = list(struct.unpack_from(f"<{length}i", raw, offset))
    return found
