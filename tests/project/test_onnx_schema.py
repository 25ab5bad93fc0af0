"""runtime/onnx/onnx.proto says of each field what the package onnx says: number, type, repeated or not."""

import re

import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick
onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")

FIELD = re.compile(r"(optional|repeated) (\w+) (\w+) = (\d+)( \[packed = true\])?;")


def declared():
    """(message, field) -> (repeated, type, number, packed); (enumeration, name) -> value."""
    fields, values, inside = {}, {}, []
    for line in (ROOT / "runtime" / "onnx" / "onnx.proto").read_text().splitlines():
        line = line.split("//")[0].strip()
        if opened := re.match(r"(message|enum) (\w+) {", line):
            inside.append(opened[2])
        elif line == "}":
            inside.pop()
        elif field := FIELD.match(line):
            fields[".".join(inside), field[3]] = (field[1] == "repeated", field[2], int(field[4]), bool(field[5]))
        elif value := re.match(r"(\w+) = (\d+);", line):
            values[".".join(inside), value[1]] = int(value[2])
    return fields, values


def found(dotted):
    what = onnx
    for part in dotted.split("."):
        what = getattr(what, part)
    return what


def type_name(field):
    """The keyword or the name of the message or enumeration; data_type is the only number that stands for an enumeration."""
    of = field.message_type or field.enum_type
    if of:
        return of.name
    return {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 9: "string", 12: "bytes"}[field.type]


def test_fields():
    fields, values = declared()
    assert len(fields) > 60 and len(values) > 20
    for (message, name), (repeated, kind, number, packed) in fields.items():
        theirs = found(message).DESCRIPTOR.fields_by_name[name]
        many = theirs.is_repeated if hasattr(theirs, "is_repeated") else theirs.label == theirs.LABEL_REPEATED
        assert (bool(many), type_name(theirs), theirs.number) == (repeated, kind, number), f"{message}.{name}"
        assert bool(theirs.GetOptions().packed) == packed, f"{message}.{name}"


def test_enumerations():
    for (enumeration, name), value in declared()[1].items():
        assert found(enumeration).Value(name) == value, f"{enumeration}.{name}"
