#!/usr/bin/env python3
"""Judges random answers of grammar_walk by JSON Schema's own rules, written a second time: every answer must be
JSON that its schema accepts, and every call's arguments must fit the function's parameters.
Usage: judge_walks.py GRAMMAR_WALK ROWS.json WALKS"""
import datetime
import ipaddress
import json
import re
import subprocess
import sys
import uuid

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def same(one, other):
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, (list, dict)):
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return one == other


def has_type(value, name):
    if name in ("number", "integer"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (name == "number" or value == int(value))
    return isinstance(value, TYPES[name])


def resolve(root, reference):
    at = root
    for token in reference.lstrip("#").split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        at = at[int(token)] if isinstance(at, list) else at[token]
    return at


def fits_format(value, name):
    try:
        if name == "date":
            return bool(datetime.date.fromisoformat(value)) or True
        if name in ("date-time", "time"):
            text = value if name == "date-time" else "2024-01-01T" + value
            fraction = re.search(r"\.(\d+)", text)
            if fraction:
                text = text.replace(fraction[0], "." + fraction[1].ljust(6, "0"))
            return bool(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")))
        if name == "uuid":
            return str(uuid.UUID(value)) == value
        if name == "ipv4":
            return bool(ipaddress.IPv4Address(value)) or True
    except ValueError as fault:
        # Year 0 is a date of the format, but none of Python's.
        return value.startswith("0000-") and "year" in str(fault)
    label = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    host = rf"{label}(?:\.{label})*"
    if name == "hostname":
        return len(value) <= 253 and re.fullmatch(host, value)
    if name == "email":
        return re.fullmatch(rf"[\w.+-]+@{host}", value) and ".." not in value
    if name == "uri":
        return re.fullmatch(rf"https?://{host}(:\d+)?([/?#]\S*)?", value)
    return True


def fault(value, schema, root):
    """Why the value does not fit, or None."""
    if schema is True or schema == {}:
        return None
    if schema is False:
        return "false"
    if value is None and schema.get("nullable"):
        return None
    parts = [resolve(root, schema["$ref"])] if "$ref" in schema else []
    for part in parts + schema.get("allOf", []):
        wrong = fault(value, part, root)
        if wrong:
            return wrong
    for word, count in (("anyOf", lambda n: n > 0), ("oneOf", lambda n: n == 1)):
        if word in schema and not count(sum(fault(value, part, root) is None for part in schema[word])):
            return word
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(has_type(value, name) for name in names):
            return "type"
    if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
        return "enum"
    if "const" in schema and not same(value, schema["const"]):
        return "const"
    if isinstance(value, str):
        return string_fault(value, schema)
    if isinstance(value, dict):
        return object_fault(value, schema, root)
    if isinstance(value, list):
        return array_fault(value, schema, root)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number_fault(value, schema)
    return None


def string_fault(value, schema):
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return "length"
    pattern = schema.get("pattern")
    if pattern:
        # What ECMA-262 has otherwise: the end, and a byte order mark as white space.
        pattern = re.sub(r"(?<!\\)\$(?=$|\|)", r"\\Z", pattern).replace(r"\s", "[\\s\ufeff]")
        if not re.search(pattern, value):
            return "pattern"
    if "format" in schema and not fits_format(value, schema["format"]):
        return "format"
    return None


def number_fault(value, schema):
    right = (value >= schema.get("minimum", value) and value <= schema.get("maximum", value)
             and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
             and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"]))
    return None if right else "bounds"


def object_fault(value, schema, root):
    properties = schema.get("properties", {})
    if not all(name in value for name in schema.get("required", [])):
        return "required"
    for key, inner in value.items():
        wrong = fault(inner, properties.get(key, schema.get("additionalProperties", True)), root)
        if wrong:
            return f"{key}: {wrong}"
    return None


def array_fault(value, schema, root):
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return "items"
    places = schema.get("prefixItems", [])
    for i, inner in enumerate(value):
        wrong = fault(inner, places[i] if i < len(places) else schema.get("items", True), root)
        if wrong:
            return f"[{i}]: {wrong}"
    return None


def no_constant(text):
    raise ValueError(text)


def read(text):
    value = json.loads(text, parse_constant=no_constant)
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # no lone surrogates
    return value


def judge_calls(calls, row):
    parameters = {f["name"]: f.get("parameters") or {} for f in row["functions"]}
    if not 1 <= len(calls) <= (64 if row["several"] else 1):
        return f"{len(calls)} calls"
    for name, arguments in calls:
        if name not in parameters:
            return f"no function {name}"
        wrong = fault(read(arguments), {**parameters[name], "additionalProperties": False}, parameters[name])
        if wrong:
            return f"{name}: {wrong}"
    return None


def main():
    program, path, walks = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    run = subprocess.run([program, path, walks], stdout=subprocess.PIPE, check=False)
    judged, wrong = 0, 0
    for line in run.stdout.decode("utf-8").splitlines():
        answer = json.loads(line)
        row = rows[answer["row"]]
        try:
            if "calls" in answer:
                reason = judge_calls(answer["calls"], row)
            else:
                reason = fault(read(answer["text"]), row["schema"], row["schema"])
        except ValueError as error:
            reason = str(error)
        judged += 1
        if reason:
            wrong += 1
            print(f"{row['name']}: {reason}: {line[:400]}")
    expected = sum(row.get("walk", True) for row in rows) * int(walks)
    print(f"{judged} answers judged of {expected}, {wrong} wrong, the program's status is {run.returncode}")
    return 0 if judged == expected and wrong == 0 and run.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
