import { assert, it } from "@effect/vitest"
import { bugReport } from "../../../../src/cli/chat/slash/bug.ts"
import { fileNameOf } from "../../../../src/cli/chat/slash/export.ts"

it("a bug report has no secrets, no words of the conversation and no home folder", () => {
  const key = `AIza${"Sy0123456789abcdefghijklmnopqrstuvw"}`
  const report = bugReport({
    version: "1.2.3",
    platform: "linux",
    terminal: { TERM: "xterm" },
    session: { model: "m", tokens: 12 },
    settings: {
      mcpServers: {
        db: { command: "/home/me/bin/db", env: { PASSWORD: "hunter2hunter2" }, args: ["--token=abc123"] }
      },
      telemetry: { endpoint: `https://example.com/?key=${key}` }
    },
    records: [
      { name: "prompt", at: 0, session: "s", attributes: { text: "my secret plan" } },
      { name: "error", at: 0, session: "s", attributes: { reason: `bad key ${key}` } }
    ],
    home: "/home/me"
  })
  for (const secret of ["hunter2", "abc123", key, "my secret plan", "/home/me"]) assert.notInclude(report, secret)
  for (const fact of ["version: 1.2.3", "~/bin/db", "error", "xterm"]) assert.include(report, fact)
})

it.each([
  ["Fix the parser!", "fix-the-parser"],
  ["../../../etc/passwd", "etc-passwd"],
  ["…", "conversation"],
  ["Größe und 中文", "größe-und-中文"]
] as const)("the name of an exported file %s: %s", (title, expected) => assert.strictEqual(fileNameOf(title), expected))
