#!/usr/bin/env python3
"""What recorded conversations prove, worked out a second time.

Reads the transcripts under ../fixtures with nothing but the standard library and writes, beside itself, one golden
JSON file for each: what was asked first and last, which file ended in which state, how each shell command ended, which
failures nothing resolved, the last todo list, the last actions. It shares no code with src and takes other ways on
purpose (a real shell word splitter, tables of what each agent's answers say), so that where both agree, two
independent readings agree.

    python3 test/golden/compute.py          writes the golden files
    python3 test/golden/compute.py --check  exits 1 when one of them would change

The rules, which are those of a careful reader:

- A call counts only when it was answered and did not fail. A shell command is listed however it ended.
- A file is `created` when it was made in this conversation and still stands, `deleted` when it was removed last,
  `modified` when it was changed and existed before, `read` when it was only looked at. Edits of a created file leave
  it created.
- `how` names what touched a file: the file tools of the agent, `>`, `rm`, `mv`, and `cp`, `sed -i`, `tee`, `touch`.
- A command that went on in the background has no exit code, unless its task was asked for later and told one.
  A command that a signal ended has none either.
- A failure is resolved when the same tool did the same thing (same command, same file, same query) without failing,
  when a later call reached the same file, or when a later command ran the program that failed, with its subcommand.
- A command of nothing but `ls`, `grep`, `cp` and the like leaves no failure behind.
- A search with exit code 1 and without output found nothing, which is no failure.
- What a program put in the user's place (reminders, task notices, local command output, commands to the program) is
  not what the person said. What the person answered to a question of the agent is.
"""

import gzip
import json
import re
from pathlib import Path

from goldenFiles import write

HERE = Path(__file__).resolve().parent
SESSIONS = HERE.parent / "fixtures" / "sessions"
CONTENTS = HERE.parent / "fixtures" / "contents"
LAST_ACTIONS = 12

# --- events: ("said", text) | ("call", key, name, args) | ("answer", key, failed, texts) ---------------------------


def records(path):
    opened = gzip.open(path, "rt", encoding="utf-8", newline="\n") if path.suffix == ".gz" else open(path, encoding="utf-8")
    with opened as file:
        return [json.loads(line) for line in file.read().split("\n") if line.strip() != ""]


def texts_of(content):
    """The texts of an answer, one a block."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block.get("type") == "text"]


ELEMENT = re.compile(
    r"<(system-reminder|command-name|command-message|local-command-stdout|local-command-stderr|task-notification)>.*?</\1>", re.S
)


def claude_person(text):
    """The pieces of a Claude Code user text that a person typed."""
    if text.startswith("[Request interrupted by user"):
        return []
    if text.lstrip().startswith("<task-notification>"):
        # The whole message is the program's: a line for the agent follows the element.
        return []
    arguments = re.search(r"<command-args>(.*?)</command-args>", text, re.S)
    if arguments:
        return [arguments.group(1).strip()] if arguments.group(1).strip() else []
    rest = ELEMENT.sub("", text).strip()
    return [rest] if rest else []


def claude_events(path):
    lines = [r for r in records(path) if r.get("type") in ("user", "assistant", "system")]
    by_uuid = {r["uuid"]: r for r in records(path) if "uuid" in r}
    messages = [r for r in lines if r["type"] in ("user", "assistant") and not r.get("isSidechain")]
    # From the last message back to the root; where a parent is not in the file, the message before goes on.
    order = {id(r): i for i, r in enumerate(messages)}
    on_chain, node = set(), messages[-1]
    while node is not None:
        on_chain.add(node["uuid"])
        parent = node.get("parentUuid") or node.get("logicalParentUuid")
        following = by_uuid.get(parent) if parent else None
        if following is None and (parent is not None or node.get("isCompactSummary") or node.get("subtype") == "compact_boundary"):
            earlier = [m for m in messages if m["timestamp"] < node["timestamp"] and m["uuid"] not in on_chain]
            following = max(earlier, key=lambda m: order[id(m)]) if earlier else None
        node = following
    ids = {m["message"].get("id") for m in messages if m["uuid"] in on_chain and m["type"] == "assistant"}
    calls = set()
    kept = []
    for message in messages:
        content = message["message"]["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        mine = message["uuid"] in on_chain or (message["type"] == "assistant" and message["message"].get("id") in ids)
        mine = mine or any(b["type"] == "tool_result" and b["tool_use_id"] in calls for b in blocks)
        if not mine:
            continue
        calls |= {b["id"] for b in blocks if b["type"] == "tool_use"}
        kept.append((message, blocks))
    events = []
    for message, blocks in kept:
        if message.get("isMeta"):
            continue
        for block in blocks:
            if block["type"] == "tool_use":
                events.append(("call", block["id"], block["name"], block["input"]))
            elif block["type"] == "tool_result":
                events.append(("answer", block["tool_use_id"], block.get("is_error") is True, texts_of(block.get("content"))))
                asked = message.get("toolUseResult")
                given = asked.get("answers") if isinstance(asked, dict) else None
                events.extend(("said", text) for text in (given.values() if isinstance(given, dict) else []))
            elif block["type"] == "text" and message["type"] == "user" and not message.get("isCompactSummary"):
                events.extend(("said", piece) for piece in claude_person(block["text"]))
    return events


def pi_events(path):
    events = []
    for record in records(path):
        message = record.get("message") if record.get("type") == "message" else None
        if message is None:
            continue
        if message["role"] == "user":
            events.extend(("said", text.strip()) for text in texts_of(message["content"]) if text.strip())
        elif message["role"] == "assistant":
            events.extend(("call", b["id"], b["name"], b["arguments"]) for b in message["content"] if b["type"] == "toolCall")
        elif message["role"] == "toolResult":
            events.append(("answer", message["toolCallId"], message.get("isError") is True, texts_of(message["content"])))
    return events


def contents_events(path):
    events = []
    document = json.loads(path.read_text(encoding="utf-8"))
    for index, content in enumerate(document if isinstance(document, list) else document["history"]):
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                events.append(("call", call["id"], call["name"], call.get("args", {})))
            elif "functionResponse" in part:
                answer = part["functionResponse"]
                response = answer["response"]
                failed = "error" in response
                events.append(("answer", answer["id"], failed, [response["error"] if failed else response["output"]]))
            elif content["role"] == "user" and "text" in part and not (index == 0 and part["text"].startswith("This is the Gemini CLI.")):
                events.append(("said", part["text"].strip()))
    return events


# --- shell ------------------------------------------------------------------------------------------------------------


def shell_words(text):
    """Splits a command line into tokens: ("word", value, plain) and ("op", value). Here-document bodies are skipped,
    command substitutions stay in their word, which then is not plain."""
    tokens, i, pending = [], 0, []
    while i < len(text):
        c = text[i]
        if c == "\n":
            tokens.append(("op", "\n", True))
            i += 1
            for delimiter in pending:
                end = re.compile(r"^\t*" + re.escape(delimiter) + r"$", re.M).search(text, i)
                i = len(text) if end is None else end.end()
            pending = []
        elif c in " \t":
            i += 1
        elif c == "#" and (i == 0 or text[i - 1] in " \t\n;"):
            while i < len(text) and text[i] != "\n":
                i += 1
        elif re.match(r"\d*(<<-?|<<<|>>|>\||>&|<&|&>>|&>|>|<)", text[i:]):
            op = re.match(r"\d*(<<<|<<-?|>>|>\||>&|<&|&>>|&>|>|<)", text[i:])
            i += op.end()
            if op.group(1) in ("<<", "<<-"):
                word, i, _ = one_word(text, i)
                pending.append(word)
            elif op.group(1) in (">&", "<&"):
                target = re.match(r"[\d-]+", text[i:])
                i += target.end() if target else 0
                if not target:
                    tokens.append(("op", ">", True))
            else:
                # What goes to file descriptor 2 makes a file too.
                tokens.append(("op", op.group(1).replace("|", "").replace("&", ""), True))
        elif re.match(r"&&|\|\||\|&|[;|&()]", text[i:]):
            op = re.match(r"&&|\|\||\|&|[;|&()]", text[i:]).group(0)
            tokens.append(("op", op, True))
            i += len(op)
        else:
            word, i, plain = one_word(text, i)
            tokens.append(("word", word, plain))
    return tokens


def one_word(text, i):
    while i < len(text) and text[i] in " \t":
        i += 1
    out, plain = "", True
    while i < len(text):
        c = text[i]
        if c == "'":
            end = text.find("'", i + 1)
            end = len(text) if end < 0 else end
            out, i = out + text[i + 1 : end], end + 1
        elif c == '"':
            i += 1
            while i < len(text) and text[i] != '"':
                if text[i] == "\\" and i + 1 < len(text):
                    out, i = out + text[i + 1], i + 2
                elif text.startswith("$(", i):
                    end = closing(text, i + 2)
                    out, i, plain = out + text[i:end], end, False
                else:
                    plain = plain and text[i] not in "$`"
                    out, i = out + text[i], i + 1
            i += 1
        elif c == "\\":
            out, i = out + text[i + 1 : i + 2], i + 2
        elif text.startswith("$(", i):
            end = closing(text, i + 2)
            out, i, plain = out + text[i:end], end, False
        elif c in " \t\n;|&()<>":
            break
        else:
            plain = plain and c not in "$`*?[{"
            out, i = out + c, i + 1
    return out, i, plain


def closing(text, i):
    depth = 1
    while i < len(text) and depth > 0:
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        i += 1
    return i


def shell_effects(command):
    """What a command that succeeded did to files: (effect, path, how)."""
    effects, words, target, folder = [], [], None, ""

    def at(path):
        return path if folder == "" or path.startswith(("/", "~")) else f"{folder}/{path}"

    def finish():
        nonlocal words, folder
        names = [w for w, _ in words]
        while names and (names[0] in ("sudo", "git", "command") or re.match(r"^\w+=", names[0])):
            names, words = names[1:], words[1:]
        operands = [w for w, plain in words[1:] if plain and not w.startswith("-")]
        program = names[0] if names else ""
        if program == "cd" and len(operands) == 1:
            folder = at(operands[0])
        elif program in ("rm", "unlink"):
            effects.extend(("delete", at(p), "rm") for p in operands)
        elif program == "mv" and len(operands) == 2:
            effects.extend([("delete", at(operands[0]), "mv"), ("create", at(operands[1]), "mv")])
        elif program == "cp" and len(operands) >= 2:
            effects.append(("write", at(operands[-1]), "cp"))
        elif program == "touch":
            effects.extend(("write", at(p), "touch") for p in operands)
        elif program == "tee":
            effects.extend(("write", at(p), "tee") for p in operands)
        elif program == "sed" and any(w == "-i" or w.startswith("-i.") for w in names):
            # BSD's sed wants a suffix after -i, often an empty one; the script comes before the files.
            script = [w for w, _ in words[1:] if not w.startswith("-") and w != ""]
            effects.extend(("change", at(p), "sed -i") for p in script[1:])
        words = []

    tokens = shell_words(command)
    for kind, value, plain in tokens:
        if kind == "op" and value in (">", ">>"):
            target = value
        elif kind == "op" and value in ("<", "<<<"):
            target = "<"
        elif kind == "op":
            finish()
            target = None
        elif target is not None:
            if target != "<" and plain and not value.startswith("/dev/"):
                effects.append(("write", at(value), target))
            target = None
        else:
            words.append((value, plain))
    finish()
    return effects


QUIET = {"cd", "echo", "cat", "head", "tail", "grep", "sed", "ls", "sleep", "find", "wc", "sort", "cp", "mv", "rm", "touch", "mkdir"}
SPEAKING = {"git", "npm", "mix", "bd", "go", "cargo", "make", "npx", "gh"}


def shell_programs(command, seen=False):
    """The programs of a command line, those with subcommands as two words: `git add`. `seen`: only those whose exit
    code the shell passes on."""
    found, words = [], []
    for kind, value, _ in [*shell_words(command), ("op", ";", True)]:
        if kind == "word":
            words.append(value)
        elif value in ("&&", "||", "|", ";", "\n"):
            words = [w for w in words if not re.match(r"^\w+=|^-|^(run|exec)$", w)]
            if words and words[0] not in QUIET and not (seen and value in ("|", "||")):
                found.append(" ".join(words[:2]) if words[0] in SPEAKING else words[0])
            words = []
    return found


# --- agents' tools ----------------------------------------------------------------------------------------------------

READ = {"Read": "file_path", "read": "path", "read_file": "file_path"}
WRITE = {"Write": "file_path", "write": "path", "write_file": "file_path"}
EDIT = {"Edit": "file_path", "edit": "path", "replace": "file_path"}
FILES = {*READ, *WRITE, *EDIT}
SHELL = {"Bash", "bash", "run_shell_command"}
TODOS = {"write_todos"}


def exit_of(name, failed, text):
    """The exit code of an answered shell command, or None where the answer tells none."""
    if name == "Bash":
        told = re.match(r"Exit code (\d+)", text)
        if told:
            return int(told.group(1)) if failed else 0
        return None if failed or text.startswith("Command running in background with ID:") else 0
    if name == "bash":
        told = re.search(r"Command exited with code (\d+)\s*\Z", text)
        return int(told.group(1)) if failed and told else None if failed else 0
    if failed:
        return None
    # The labels after the output are the tool's own; the last of each counts.
    signal = re.findall(r"^Signal: (.+)$", text, re.M)
    codes = re.findall(r"^Exit Code: (.+)$", text, re.M)
    if signal and signal[-1] != "(none)":
        return None
    return int(codes[-1]) if codes and codes[-1] != "(none)" else 0


def made_new(name, text):
    """Whether a write made the file: True, False, or None where the answer does not say."""
    first = text.split("\n")[0]
    if first.startswith(("File created successfully at:", "Successfully created and wrote to new file:", "Created new file:")):
        return True
    if re.match(r"The file .* has been updated", first) or first.startswith("Successfully overwrote file:"):
        return False
    return None


def last_program(command):
    words = [" " if kind == "op" and value not in (">", ">>", "<") else value for kind, value, _ in shell_words(command)]
    while words and words[-1] == " ":
        words.pop()
    return words[len(words) - words[::-1].index(" ")] if " " in words else next(iter(words), "")


def found_nothing(text):
    """Whether a search printed nothing but how it ended."""
    rest = re.sub(r"^(Exit code 1|Command exited with code 1|\(no output\)|Exit Code: 1|Output: \(empty\)|(Command|Directory|Error|Signal|Background PIDs|Process Group PGID): .*)$", "", text, flags=re.M)
    return rest.strip() == ""


def analyse(events):
    answers = {e[1]: e for e in events if e[0] == "answer"}
    said = [e[1] for e in events if e[0] == "said"]
    requests = [text for text in said if not re.fullmatch(r"[/?]\S*", text)]
    files, commands, failures, todos, actions = {}, {}, {}, None, []
    background = {}

    def touch(effect, path, how):
        before = files.pop(path, None) or {"state": None, "reads": 0, "changes": 0, "how": []}
        state, stands = before["state"], before["state"] not in (None, "deleted")
        if effect == "read":
            state = state if stands else "read"
        elif effect == "delete":
            state = "deleted"
        elif effect == "create":
            state = "created"
        elif effect == "write":
            state = "created" if not stands or state == "created" else "modified"
        elif effect in ("change", "overwrite"):
            state = state if state == "created" else "modified"
        files[path] = {
            "state": state,
            "reads": before["reads"] + (effect == "read"),
            "changes": before["changes"] + (effect in ("create", "write", "change", "overwrite")),
            "how": sorted(set(before["how"]) | {how}),
        }

    for event in events:
        if event[0] != "call":
            continue
        _, key, name, args = event
        answer = answers.get(key)
        text = "\n".join(answer[3]) if answer else ""
        failed = answer is not None and answer[2]
        target, exit_code = None, None
        if name in SHELL:
            target = args["command"]
            exit_code = exit_of(name, failed, text) if answer else None
            failed = failed or (exit_code is not None and exit_code != 0) or (answer is not None and exit_code is None and name == "run_shell_command")
            if exit_code == 1 and last_program(target) in ("grep", "rg", "diff") and found_nothing(text):
                failed = False
            times = commands.pop(target, {"times": 0})["times"] + 1
            commands[target] = {"exit": exit_code, "times": times}
            task = re.match(r"Command running in background with ID: (\w+)", text)
            if task:
                background[task.group(1)] = target
            if exit_code == 0:
                for effect, path, how in shell_effects(target):
                    touch(effect, path, how)
        elif name in READ or name in WRITE or name in EDIT:
            target = args.get({**READ, **WRITE, **EDIT}[name])
            if answer is not None and not failed:
                if name in READ:
                    touch("read", target, name)
                elif name in WRITE:
                    touch({True: "create", False: "overwrite", None: "write"}[made_new(name, text)], target, name)
                elif made_new(name, text):
                    touch("create", target, "replace, new file")
                else:
                    touch("change", target, name)
        elif name in TODOS:
            if answer is not None and not failed:
                todos = [{"text": t["description"], "status": t["status"]} for t in args["todos"]]
        else:
            target = next((v for v in args.values() if isinstance(v, str)), None)
        if name == "TaskOutput" and answer is not None:
            ended = re.search(r"<exit_code>(\d+)</exit_code>", text)
            of = background.get(args["task_id"])
            if ended and of in commands:
                commands[of]["exit"] = int(ended.group(1))
        what = (name, target)
        if failed and name in SHELL and not shell_programs(target):
            failures.pop(what, None)
        elif failed:
            failures.pop(what, None)
            failures[what] = [line.strip() for line in text.split("\n") if line.strip() != ""]
        elif answer is not None:
            failures.pop(what, None)
            for tool, subject in list(failures):
                if name in SHELL:
                    resolved = exit_code == 0 and tool in SHELL and shell_programs(subject)[-1:] in [[p] for p in shell_programs(target, seen=True)]
                else:
                    resolved = name in FILES and tool in FILES and subject == target
                if resolved:
                    failures.pop((tool, subject))
        actions.append({"tool": name, "target": target if name in SHELL or name in READ or name in WRITE or name in EDIT else None, "failed": failed})

    return {
        "said": said,
        "originalRequest": requests[0] if requests else None,
        "latestRequest": requests[-1] if requests else None,
        "files": {path: files[path] for path in sorted(files)},
        "commands": [{"command": command, **commands[command]} for command in commands],
        "failures": [{"tool": tool, "target": target, "lines": lines} for (tool, target), lines in failures.items()],
        "todos": todos,
        "recent": actions[-LAST_ACTIONS:],
    }


FIXTURES = [
    ("claude-code-1512-lines", SESSIONS / "claude-code-1512-lines.jsonl.gz", claude_events),
    ("claude-code-subagent", SESSIONS / "claude-code-subagent.jsonl.gz", claude_events),
    ("claude-code-tools", SESSIONS / "claude-code-tools.jsonl.gz", claude_events),
    ("pi-1019-lines", SESSIONS / "pi-1019-lines.jsonl.gz", pi_events),
    ("gemini-parser-fix", CONTENTS / "gemini-parser-fix.json", contents_events),
]


if __name__ == "__main__":
    write("compute.py", {name: analyse(read(path)) for name, path, read in FIXTURES})
