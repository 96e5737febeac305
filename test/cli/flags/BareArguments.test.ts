import { assert, describe, it } from "@effect/vitest"
import { valuedFlags, withCommand } from "../../../src/cli/flags/BareArguments.ts"
import { helpPages } from "../../../src/cli/main.ts"

const isCommand = (name: string) => ["ask", "chat", "cost", "recall", "sessions"].includes(name)

/** Arguments with a bar between them. */
const split = (text: string) => text.split("|").filter((word) => word !== "")

describe("arguments without a command", () => {
  const rows: ReadonlyArray<readonly [given: string, expected: string]> = [
    ["-p|why?", "ask|why?"],
    ["--print|why?", "ask|why?"],
    ["--prompt=why?", "ask|why?"],
    ["-p|-m|pro|why?", "ask|-m|pro|why?"],
    ["-m|pro|-p|why?", "ask|-m|pro|why?"],
    ["--json|-p|why?", "ask|--json|why?"],
    ["-p|--approve|edits|why?", "ask|--approve|edits|why?"],
    ["--output-format|json|-p|why?", "ask|--json|why?"],
    ["--plain|-p|why?", "ask|why?"],
    ["-c|-p|more", "ask|-c|more"],
    ["-r|3|--print|more|--approve|all", "ask|-r=3|more|--approve|all"],
    ["-p|x|--output-format|json", "ask|x|--json"],
    ["-p|x|--output-format=stream-json", "ask|x|--stream-json"],
    ["-p|x|-o|text", "ask|x"],
    ["-p|x|--output-format|yaml", "ask|x|--output-format|yaml"],
    ["-p|cost", "ask|cost"],
    ["-p", "ask"],
    ["-p|--help", "ask|--help"],
    ["why is the build red?", "ask|why is the build red?"],
    ["--approve|edits|fix the build", "ask|--approve|edits|fix the build"],
    ["fix the build|--add-dir|../b", "ask|fix the build|--add-dir|../b"],
    ["--json", "ask|--json"],
    ["--|-x is what?", "ask|--|-x is what?"],
    ["-c", "chat|-c"],
    ["-r", "chat|-r"],
    ["--resume|latest", "chat|--resume=latest"],
    ["--resume=latest", "chat|--resume=latest"],
    ["-m|pro", "chat|-m|pro"],
    ["--model|pro|--continue", "chat|--model|pro|--continue"],
    ["--approve|edits", "chat|--approve|edits"],
    ["--plain", "chat|--plain"],
    ["--no-tools", "chat|--no-tools"],
    ["--add-dir|cost", "chat|--add-dir|cost"],
    ["--session|x", "chat|--session|x"],
    ["--log-level|debug", "chat|--log-level|debug"],
    ["--approve|edits|--help", "chat|--approve|edits|--help"],
    ["--approve|edits|chat", "chat|--approve|edits"],
    ["--json|cost", "cost|--json"],
    ["--aprove|edits", "chat|--aprove|edits"],
    ["comprss|file", "comprss|file"],
    ["--json|comprss", "comprss|--json"],
    ["", ""],
    ["--help", "--help"],
    ["--version", "--version"],
    ["--completions|bash", "--completions|bash"],
    ["--log-level|debug|--help", "--log-level|debug|--help"],
    ["ask|-p|x", "ask|x"],
    ["ask|x|--output-format|json", "ask|x|--json"],
    ["ask|--resume|latest|why?", "ask|--resume=latest|why?"],
    ["ask|--|--resume|x", "ask|--|--resume|x"],
    ["chat|--resume", "chat|--resume"],
    ["chat|--resume|latest", "chat|--resume=latest"],
    ["chat|-r|3|--plain", "chat|-r=3|--plain"],
    ["chat|--resume|--plain", "chat|--resume|--plain"],
    ["sessions|--resume|x", "sessions|--resume|x"],
    ["recall|file|-p", "recall|file|-p"],
    ["help", "--help"],
    ["help|sesions", "sesions"],
    ["help|sessions|list", "sessions|list|--help"],
    ["ask|help", "ask|help"]
  ]
  it.each(rows)("palimpsest %s: %s", (given, expected) =>
    assert.strictEqual(withCommand(split(given), isCommand).join("|"), expected)
  )

  it("knows every flag of chat and ask that takes a value", async () => {
    const pages = await helpPages()
    // oxlint-disable-next-line no-control-regex
    const shown = `${pages["chat"]}\n${pages["ask"]}`.replace(/\u001b\[\d+m/g, "")
    const flags = [...shown.matchAll(/^ {2}(--[a-z-]+)(?:, (-[a-z]))? (?! )\S/gm)].flatMap(([, long = "", short]) => [
      long,
      ...(short === undefined ? [] : [short])
    ])
    const optional = new Set(["--resume", "-r"])
    assert.isAbove(flags.length, 8)
    assert.deepStrictEqual(
      flags.filter((flag) => !valuedFlags.has(flag) && !optional.has(flag)),
      []
    )
  })
})
