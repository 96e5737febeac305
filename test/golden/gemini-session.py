#!/usr/bin/env python3
"""What the two hand-made Gemini CLI sessions say, worked out a second time.

Reads ../fixtures/gemini with nothing but the standard library and writes gemini-session.json beside itself. It shares no
code with src and takes another way: records are first replayed to the lists of messages that stood between two
checkpoints, as plain JSON, and only then told.

    python3 test/golden/gemini-session.py          writes the golden file
    python3 test/golden/gemini-session.py --check  exits 1 when it would change

For each message: who speaks ("user", "model", or whose the words are), when, what the provider counted, and its parts:
["text", words], ["thought", words], ["call", id, name, arguments], ["result", id, response], ["other", JSON].
Arguments are JSON texts without spaces, because their numbers may have more digits than a program keeps.
"""

import json
from pathlib import Path

from goldenFiles import write

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures" / "gemini"
DOCUMENT = FIXTURES / "session-2026-02-03T10-15-5f0c2d1a.json"
RECORDS = FIXTURES / "session-2026-08-21T08-00-c0ffee00.jsonl"


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def words(content):
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "[part]") for part in content)


def part_of(part):
    if part.get("thought"):
        return ["thought", part["text"]]
    if "text" in part:
        return ["text", part["text"]]
    if "functionResponse" in part:
        answer = part["functionResponse"]
        return ["result", answer["id"], compact(answer["response"])]
    return ["other", compact(part)]


def tell(message, first, given, skipped):
    """The messages of one record, or the kind under which it is skipped."""
    kind = message["type"]
    if kind in ("info", "warning", "error"):
        return kind
    if kind == "user":
        said = words(message["content"]).strip()
        if said == "":
            return "blank message"
        if said[0] in "/?":
            return "command"
        who = "user"
        if said.startswith("<session_context>"):
            who = "environment" if first else "program"
        elif said.startswith("<hook_context>"):
            who = "program"
        elif said.startswith("<state_snapshot>"):
            who = "summary"
        content = message["content"]
        parts = [["text", content]] if isinstance(content, str) else [part_of(p) for p in content]
        new = [p for p in parts if p[0] != "result" or p[1] not in given]
        if len(new) < len(parts):
            skipped["repeated result"] = skipped.get("repeated result", 0) + len(parts) - len(new)
        parts = new
        return [{"who": who, "at": message["timestamp"], "usage": None, "parts": parts}] if parts else []
    thoughts = [
        ["thought", f"**{t['subject']}** {t['description']}" if t["subject"] else t["description"]]
        for t in message.get("thoughts") or []
    ]
    content = message["content"]
    spoken = [part_of(p) for p in content] if isinstance(content, list) else [["text", content]] if content else []
    calls = message.get("toolCalls") or []
    parts = thoughts + spoken + [["call", c["id"], c["name"], compact(c["args"])] for c in calls]
    tokens = message.get("tokens")
    usage = tokens and {
        "prompt": tokens["input"],
        "answer": tokens["output"],
        "thoughts": tokens.get("thoughts", 0),
        "cached": tokens["cached"],
    }
    told = [{"who": "model", "at": message["timestamp"], "usage": usage, "parts": parts}]
    answers = []
    for c in calls:
        result = c.get("result")
        if isinstance(result, str):
            key = "error" if c["status"] in ("error", "cancelled") else "output"
            answers.append(["result", c["id"], compact({key: result})])
        elif result:
            answers.extend(part_of(p) for p in result)
    given.update(a[1] for a in answers)
    if answers:
        at = next(c["timestamp"] for c in calls if c.get("result"))
        told.append({"who": "user", "at": at, "usage": None, "parts": answers})
    return told


def tell_all(messages, skipped, known):
    """All messages of a list; `known`: what opened the conversation before."""
    told, given, first = [], set(), True
    for message in messages:
        one = tell(message, first, given, skipped)
        if isinstance(one, str):
            skipped[one] = skipped.get(one, 0) + 1
            continue
        first = first and message["type"] != "user"
        told.extend(m for m in one if m["parts"] not in known)
    return told


def document():
    session = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    skipped = {}
    messages = tell_all(session["messages"], skipped, [])
    return {"session": session["sessionId"], "model": "gemini-2.5-flash", "stretches": [messages], "skipped": skipped}


def records():
    skipped, session = {}, None
    current, stretches = [], []
    for line in RECORDS.read_text(encoding="utf-8").split("\n"):
        if line == "":
            continue
        record = json.loads(line)
        if "$rewindTo" in record:
            at = [m["id"] for m in current].index(record["$rewindTo"])
            skipped["rewound"] = skipped.get("rewound", 0) + len(current) - at
            del current[at:]
        elif "$set" in record:
            if "messages" in record["$set"]:
                if current:
                    stretches.append(current)
                current = record["$set"]["messages"]
        elif "id" in record:
            same = [i for i, m in enumerate(current) if m["id"] == record["id"]]
            if same:
                current[same[0]] = record
            else:
                current.append(record)
        else:
            session = record["sessionId"]
    stretches.append(current)
    told, known = [], []
    for stretch in stretches:
        told.append(tell_all(stretch, skipped, known))
        known = known + [m["parts"] for m in told[-1] if m["who"] == "environment"]
    return {"session": session, "model": "gemini-3-flash", "stretches": told, "skipped": skipped}


if __name__ == "__main__":
    write("gemini-session.py", {"gemini-session": {"document": document(), "records": records()}})
