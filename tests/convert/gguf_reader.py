"""Reads the metadata of a GGUF file, from the published description of the format alone."""
import struct

FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
NAMES = {0: "u8", 1: "i8", 2: "u16", 3: "i16", 4: "u32", 5: "i32", 6: "f32", 7: "bool", 8: "string",
         10: "u64", 11: "i64", 12: "f64"}
STRING, ARRAY = 8, 9


class Header:
    """values: key -> (type, value), in the order of the file; the types of arrays are "[u32]"."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes, self.at = f.read(), 0
        magic, version, self.tensors, count = self.take("<4sIQQ")
        assert magic == b"GGUF" and version == 3, (magic, version)
        self.values = {}
        for _ in range(count):
            key = self.string().decode()
            assert key not in self.values, key
            self.values[key] = self.value(*self.take("<I"))

    def take(self, layout):
        found = struct.unpack_from(layout, self.bytes, self.at)
        self.at += struct.calcsize(layout)
        return found

    def string(self):
        size, = self.take("<Q")
        self.at += size
        return self.bytes[self.at - size:self.at]

    def value(self, kind):
        if kind == STRING:
            return "string", self.string()
        if kind != ARRAY:
            return NAMES[kind], self.take("<" + FORMATS[kind])[0]
        item, count = self.take("<IQ")
        if item == STRING:
            return "[string]", [self.string() for _ in range(count)]
        return f"[{NAMES[item]}]", list(self.take(f"<{count}{FORMATS[item]}"))
