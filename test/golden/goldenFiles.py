"""Writes golden JSON files, and checks that they are what a program computes."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LONGEST = 160


def text(value, indent=""):
    """A value as JSON: in one line where that is short, else with a line for each member."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= LONGEST or not isinstance(value, (dict, list)):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        members = [f"{json.dumps(key, ensure_ascii=False)}: {text(one, inner)}" for key, one in value.items()]
        opened, closed = "{", "}"
    else:
        members = [text(one, inner) for one in value]
        opened, closed = "[", "]"
    return opened + ",".join(f"\n{inner}{one}" for one in members) + f"\n{indent}{closed}"


def write(program, goldens):
    """Writes a file for each name. With --check ends with 1 when one of them would change."""
    stale = []
    for name, value in goldens.items():
        golden = text(value) + "\n"
        out = HERE / f"{name}.json"
        if "--check" not in sys.argv:
            out.write_text(golden, encoding="utf-8")
        elif not out.exists() or out.read_text(encoding="utf-8") != golden:
            stale.append(name)
    if stale:
        sys.exit(f"not what {program} computes: {', '.join(stale)}")
