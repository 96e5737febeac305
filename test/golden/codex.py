#!/usr/bin/env python3
"""What two rollouts of Codex CLI say, worked out a second time.

Reads ../fixtures/codex with nothing but the standard library and writes one golden JSON file for each, beside itself: the
messages as Contents of the Gemini API, who wrote them, what they cost, and what was left out. It shares no code with src
and goes another way: first the file becomes a flat list of items, then what was rolled back is cut from that list, then
runs of items become messages.

    python3 test/golden/codex.py          writes the golden files
    python3 test/golden/codex.py --check  exits 1 when one of them would change

The rules:

- What the model says in a row is one message, up to the next count of its tokens; so are answers in a row.
- An answer is an error when its tool says so: success is false, a shell or a patch tells another exit code than 0, or
  Codex says that it did not carry the call out.
- A program wrote what developers and the system say, and messages of the user that hold nothing but marked context.
- Rolling back n turns cuts the list before the nth last message that the person typed.
"""

import itertools
import json
import re
from pathlib import Path

from goldenFiles import write

HERE = Path(__file__).resolve().parent
FILES = HERE.parent / "fixtures" / "codex"
ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
CONTEXT = re.compile(
    r"\s*(?:<(environment_context|user_instructions)>.*</\1>|# AGENTS\.md instructions.*</INSTRUCTIONS>)\s*", re.S | re.I
)
SHELLS = ("shell", "shell_command", "exec_command", "local_shell", "apply_patch")


def part_of_block(block):
    if block["type"] != "input_image":
        return {"text": block["text"]}
    address = block["image_url"]
    if not address.startswith("data:"):
        return {"fileData": {"fileUri": address}}
    kind, data = address.removeprefix("data:").split(";base64,")
    return {"inlineData": {"mimeType": kind, "data": data}}


def arguments(text):
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": text}


def failed(tool, text):
    if tool not in SHELLS:
        return False
    try:
        wrapped = json.loads(text)
        return wrapped["metadata"]["exit_code"] != 0
    except (ValueError, TypeError, KeyError):
        pass
    code = re.search(r"\A(?:Chunk ID: \S+\n)?Wall time: [^\n]*\nProcess exited with code (-?\d+)", text)
    return (code is not None and code.group(1) != "0") or text.startswith("failed to parse function arguments")


def response(tool, output):
    refused = False
    if isinstance(output, dict):
        refused = output.get("success") is False
        output = output["content"]
    if isinstance(output, list):
        return {"error" if refused else "content": output}
    return {"error" if refused or failed(tool, output) else "output": output}


def message_of(item, tools):
    """(kind, role, author, parts) of an item; None when it is no part of the conversation."""
    kind = item["type"]
    if kind == "message":
        parts = [part_of_block(block) for block in item["content"]]
        if item["role"] == "assistant":
            return "model", "model", None, parts
        texts = [part.get("text") for part in parts]
        if item["role"] in ("developer", "system") or all(text and CONTEXT.fullmatch(text) for text in texts):
            return "typed", "user", "program", parts
        summary = texts[0] is not None and texts[0].startswith("Another language model started to solve this problem")
        return "typed", "user", "summary" if summary else None, parts
    if kind == "reasoning":
        parts = [{"text": one["text"], "thought": True} for one in item["summary"]]
        if item.get("encrypted_content"):
            parts = parts or [{"text": "", "thought": True}]
            parts[-1]["thoughtSignature"] = item["encrypted_content"]
        return "model", "model", None, parts
    made = {
        "function_call": lambda: (item["name"], arguments(item["arguments"])),
        "custom_tool_call": lambda: (item["name"], {"input": item["input"]}),
        "local_shell_call": lambda: ("local_shell", item["action"]),
    }
    if kind in made:
        name, args = made[kind]()
        tools[item["call_id"]] = name
        return "model", "model", None, [{"functionCall": {"id": item["call_id"], "name": name, "args": args}}]
    if kind in ("function_call_output", "custom_tool_call_output"):
        tool = tools.get(item["call_id"])
        name = {} if tool is None else {"name": tool}
        answer = {"id": item["call_id"], **name, "response": response(tool, item["output"])}
        return "answers", "user", None, [{"functionResponse": answer}]
    return None


def messages(entries):
    """Runs of items as messages."""
    said = []
    for (kind, _), run in itertools.groupby(entries, key=lambda entry: (entry[0], entry[5])):
        run = list(run)
        groups = [[entry] for entry in run] if kind == "typed" else [run]
        for group in groups:
            said.append(
                {
                    "role": group[0][1],
                    "author": group[0][2],
                    "parts": [part for entry in group for part in entry[3]],
                    "usage": group[-1][4].get("usage"),
                }
            )
    return said


def read(path):
    skipped, tools, steps, entries = {}, {}, [], []
    facts = {"session": None, "cwd": None, "model": None}
    before, tokens, response_number = None, None, 0

    def skip(kind):
        skipped[kind] = skipped.get(kind, 0) + 1

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        record = json.loads(line)
        kind = record.get("type")
        body = record["payload"] if kind in ENVELOPES else record
        if "record_type" in record:
            skip(f"record_type: {record['record_type']}")
        elif kind in ("session_meta", None):
            facts["session"] = body["id"]
            facts["cwd"] = body.get("cwd")
        elif kind == "turn_context":
            facts["model"] = body["model"]
            skip("turn_context")
        elif kind == "compacted":
            steps += messages(entries)
            insert = [(*message_of(item, tools), {}, 0) for item in body["replacement_history"]]
            steps.append({"compaction": messages(insert), "tokens": tokens})
            entries, tokens = [], None
        elif kind == "event_msg" and body["type"] == "token_count":
            last = body["info"]["last_token_usage"]
            spoken = [entry for entry in entries if entry[0] == "model"]
            tokens = last["total_tokens"]
            if last["total_tokens"] == 0 or not spoken or last == before:
                skip("event_msg: token_count")
            else:
                spoken[-1][4]["usage"] = {
                    "prompt": last["input_tokens"],
                    "answer": last["output_tokens"] - last["reasoning_output_tokens"],
                    "thoughts": last["reasoning_output_tokens"],
                    "cached": last["cached_input_tokens"],
                }
                response_number += 1
            before = last
        elif kind == "event_msg" and body["type"] == "thread_rolled_back":
            typed = [at for at, entry in enumerate(entries) if entry[0] == "typed" and entry[2] is None]
            cut = typed[-body["num_turns"]]
            for _ in messages(entries[cut:]):
                skip("rolled back")
            entries = entries[:cut]
        elif kind == "event_msg":
            skip(f"event_msg: {body['type']}")
        else:
            found = message_of(body, tools)
            if body["type"] == "web_search_call":
                # The provider runs the search: the item is the call and its result.
                named = {"id": body.get("id", f"web_search_{number}"), "name": "web_search"}
                calls = [{"functionCall": {**named, "args": body["action"]}}]
                results = [{"functionResponse": {**named, "response": {"output": body["status"]}}}]
                entries.append(("model", "model", None, calls, {}, response_number))
                entries.append(("answers", "user", None, results, {}, 0))
            elif found is None:
                skip(f"response_item: {body['type']}")
            else:
                entries.append((*found, {}, response_number if found[0] == "model" else 0))
                cwd = re.search(r"<cwd>(.*?)</cwd>", json.dumps(found[3])) if found[2] == "program" else None
                if cwd and facts["cwd"] is None:
                    facts["cwd"] = cwd.group(1)
    return {**facts, "skipped": skipped, "steps": steps + messages(entries)}


if __name__ == "__main__":
    write("codex.py", {path.stem: read(path) for path in sorted(FILES.glob("*.jsonl"))})
