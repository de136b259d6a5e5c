"""The ctypes structs have the layout that a C compiler gives them; the constants are the header's."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pserver
from pserver._arrays import NAMES
from pserver._native import declarations
from pserver._error import ERRORS

from serving import HANG, ROOT

#: The structs by their names in the header.
STRUCTS: dict[str, type[ctypes.Structure]] = {
    "pserver" + re.sub("([A-Z])", r"_\1", name).lower(): struct
    for name, struct in vars(declarations).items()
    if isinstance(struct, type) and struct is not ctypes.Structure
    if issubclass(struct, ctypes.Structure)
}
INCLUDE = ROOT / "include"
HEADER = (INCLUDE / "pserver.h").read_text()


def run_c(directory: Path, lines: list[str]) -> dict[str, int]:
    """The values of C expressions, one in each line, as a compiled program prints them."""
    printing = "\n".join(
        f'  printf("%s %lld\\n", "{line}", (long long)({line}));' for line in lines
    )
    source = directory / "layout.c"
    source.write_text(
        f"#include <pserver.h>\n#include <stdio.h>\nint main(void) {{\n{printing}\n  return 0;\n}}\n"
    )
    compiler = shutil.which("cc")
    assert compiler is not None, "expected a C compiler"
    program = str(directory / "layout")
    subprocess.run(
        [compiler, "-std=c11", f"-I{INCLUDE}", str(source), "-o", program],
        check=True,
        timeout=HANG,
    )
    printed = subprocess.run(
        [program], check=True, capture_output=True, text=True, timeout=HANG
    ).stdout
    return {
        name: int(number)
        for name, _, number in (line.rpartition(" ") for line in printed.splitlines())
    }


def test_every_struct_is_laid_out_as_the_compiler_does(tmp_path: Path) -> None:
    expected: dict[str, int] = {}
    for name, struct in STRUCTS.items():
        expected[f"sizeof({name})"] = ctypes.sizeof(struct)
        for entry, *_ in struct._fields_:
            field: Any = getattr(struct, entry)
            expected[f"offsetof({name}, {entry})"] = field.offset
            expected[f"sizeof((({name} *)0)->{entry})"] = field.size
    assert run_c(tmp_path, list(expected)) == expected


def test_every_struct_and_each_of_its_entries_is_known() -> None:
    bodies = dict(
        (name, body)
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\n\} (\w+);", HEADER, re.DOTALL)
    )
    assert set(bodies) == set(STRUCTS)
    for name, body in bodies.items():
        plain = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
        entries = re.findall(r"(\w+)(?:\[\w+\])?;", plain)
        assert entries == [entry for entry, *_ in STRUCTS[name]._fields_]


def test_numbers_are_those_of_the_header(tmp_path: Path) -> None:
    expected = {f"PSERVER_{name.upper()}": number for number, name in enumerate(NAMES)}
    expected |= {
        "PSERVER_RANK_MAX": declarations.RANK_MAX,
        "PSERVER_SHARDS_MAX": declarations.SHARDS_MAX,
        "PSERVER_TIMEOUT_DEFAULT": declarations.TIMEOUT_DEFAULT,
        "PSERVER_AS_IS": 0,
        "PSERVER_ENCODING_BFLOAT16": 1,
        "PSERVER_ENCODING_FLOAT16": 2,
        "PSERVER_UNINITIALIZED": 0,
        "PSERVER_READY": 2,
        "PSERVER_ASYNC": 0,
        "PSERVER_SYNC": 1,
        "PSERVER_SSP": 2,
    }
    expected |= {f"PSERVER_ERR_{error.code}": number for number, error in ERRORS.items()}
    assert run_c(tmp_path, list(expected)) == expected


def test_functions_have_the_numbers_of_arguments_of_the_header() -> None:
    plain = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    for name, arguments in {**declarations.CALLS, **declarations.PROCEDURES}.items():
        declared = re.search(rf"\b{name}\((.*?)\);", plain, re.DOTALL)
        assert declared is not None, name
        assert declared[1].count(",") + 1 == len(arguments.split()), name


def test_the_version_is_that_of_the_project() -> None:
    assert pserver.__version__ == json.loads((ROOT / "package.json").read_text())["version"]
