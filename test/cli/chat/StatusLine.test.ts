import { describe, expect, it } from "@effect/vitest"
import { type Status, statusLine } from "../../../src/cli/chat/StatusLine.ts"
import { columnsOf, plain, type Style } from "../../../src/cli/output/Output.ts"

const status: Status = {
  model: "gemini-2.5-flash",
  tokens: 12_345,
  limit: 1_048_576,
  mode: "none",
  session: "fix the build"
}
const marked: Style = { ...plain, warn: (text) => `<w>${text}</w>`, bad: (text) => `<b>${text}</b>` }

const rows: Readonly<Record<string, Status>> = {
  "a long name, and a window that is nearly full": {
    ...status,
    tokens: 838_861,
    session: "why the \u001b[2Jbuild\nfails 語語"
  },
  "one token less, no name, and a prepared snapshot": { ...status, tokens: 838_860, session: "", preparation: "ready" },
  "a snapshot, a bar and more": {
    ...status,
    tokens: 999,
    preparation: "running",
    mode: "edits",
    cost: "$0.0012",
    folder: "a-folder\u202e"
  },
  "an empty window": { ...status, model: "m", tokens: 999_499, limit: 0 },
  "everything runs, and a long title": {
    ...status,
    mode: "all",
    session: "please fix the parser for me and then run the tests ".repeat(2),
    folder: "work"
  }
}

describe("the status line", () => {
  it("has this at each width: see `test/golden/status-line.txt`, and take a new one with `vitest -u`", () => {
    const lines = Object.entries(rows).flatMap(([name, row]) => {
      let last = ""
      const drawn = Array.from({ length: 140 }, (_, at) => {
        const line = statusLine(row, at + 1, marked)
        expect(columnsOf(line.replace(/<\/?[wb]>/g, ""))).toBeLessThanOrEqual(at + 1)
        const isSame = line === last
        last = line
        return isSame ? [] : [`${at + 1} ${line}`]
      })
      return [`# ${name}`, ...drawn.flat()]
    })
    return expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/status-line.txt")
  })
})
