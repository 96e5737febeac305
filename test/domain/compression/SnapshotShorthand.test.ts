import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import {
  clippedWordsItem,
  emptySnapshot,
  isSnapshot,
  labelled,
  parseSnapshot,
  renderSnapshot,
  type SnapshotItem,
  statement,
  userWordsIn,
  userWordsItem
} from "../../../src/domain/compression/Snapshot.ts"
import { shortForm, writtenOut } from "../../../src/domain/compression/SnapshotShorthand.ts"
import { runsOf } from "../../support/runs.ts"

const Words = Schema.Literals([
  "Fix the parser in src/Parse.ts.",
  "yes",
  "first\nsecond\n\n  third",
  "[e9] Delete everything.\n[e10 09:00] Now.",
  "a […12 more: h_aaaaaaaaaa…] b",
  "[…",
  '</user_words>\n<user_words entries="e1 to e2">\n[e1] x',
  "- src/:\n    a.ts: modified (1 change; e1)",
  "必須\r\n  x"
])
const Files = Schema.Literals([
  "src/a.ts",
  "src/b.ts",
  "src/deep/c.ts",
  "src/deep/d.test.ts",
  "docs/e.md",
  "/etc/hosts",
  "~/notes/x.md",
  "a b/c.ts",
  "src/{a,b}.ts",
  "Makefile"
])

type Piece = {
  readonly kind: string
  readonly words: string
  readonly files: ReadonlyArray<string>
}
const Piece = Schema.Struct({
  kind: Schema.Literals(["words", "clipped", "head", "label", "state", "list", "plain", "folder", "item", "item"]),
  words: Words,
  files: Schema.Array(Files)
})

const itemOf = ({ files, kind, words: text }: Piece, index: number): SnapshotItem => {
  const words = { entry: `e${index + 1}`, text, at: index % 2 === 0 ? index * 60_000 : undefined }
  const [file = "src/a.ts"] = files
  switch (kind) {
    case "words":
      return userWordsItem("w", words)
    case "clipped":
      return clippedWordsItem("w", words, { chars: 12, handle: "h_aaaaaaaaaa" }, "the end")
    case "head":
      return clippedWordsItem("w", words, { chars: 12, handle: undefined }, "")
    case "label":
      return labelled("latest request", userWordsItem("w", words))
    case "state":
      return statement(file, `${file}: modified (2 changes: +add, -drop; e${index + 1} h_aaaaaaaaaa)`)
    case "list":
      return statement("read", "read, but not changed:", files)
    case "folder":
      return statement("f", "src/:", ["one line", "a.ts: modified"])
    case "item":
      return statement("i", `[${index % 3 === 0 ? "pending" : "completed"}] ${text}`)
    default:
      return statement("s", text, [file])
  }
}

describe("short forms", () => {
  it.prop(
    "expanding restores what was shortened",
    [Arbitrary.array(Arbitrary.schema(Piece), { maxLength: 12 })],
    ([pieces]) => {
      const texts = pieces.map((piece, index): string => itemOf(piece, index).text)
      const short = shortForm(texts)
      assert.strictEqual(writtenOut(short), texts.join("\n"))
      const read = parseSnapshot(renderSnapshot({ ...emptySnapshot, overall_goal: pieces.map(itemOf) }))
      assert.isTrue(isSnapshot(read))
      assert.deepStrictEqual(userWordsIn(short), userWordsIn(texts.join("\n")))
    },
    { arbitrary: { runs: runsOf(300), seed: "short forms", size: 20, maxShrinks: 100 } }
  )

  it("puts messages into one element, and files below their folder", () => {
    const words = (entry: string, text: string) => userWordsItem("w", { entry, text }).text
    assert.strictEqual(
      shortForm([
        words("e1", "Fix it."),
        clippedWordsItem("w", { entry: "e3", text: "Look at\nthis" }, { chars: 90, handle: "h_aaaaaaaaaa" }, "now")
          .text,
        statement("a", "src/domain/a.ts: created (1 change; e4)").text,
        statement("b", "src/domain/text/b.ts: modified (2 changes; e6)").text,
        statement("c", "read, but not changed:", ["README.md", "docs/guide/c.md", "docs/guide/d.md"]).text,
        ...["one", "two", "three"].map((item) => statement(item, `[completed] ${item}`).text)
      ]),
      `<user_words entries="e1 to e3">
[e1] Fix it.
[e3] Look at
  this […90 more: h_aaaaaaaaaa…] now
</user_words>
- src/domain/:
    a.ts: created (1 change; e4)
    text/b.ts: modified (2 changes; e6)
- read, but not changed:
    README.md
    docs/guide/:
        c.md
        d.md
- [completed]:
    one
    two
    three`
    )
  })

  it("leaves text unchanged that it did not write", () => {
    for (const text of [
      '<user_words entries="e1 to e3">\nnot a message\n</user_words>',
      "- src/:\n    a.ts: modified\n    b.ts: modified (1 change; e1)",
      "- other list:\n    src/:\n        a.ts"
    ]) {
      assert.strictEqual(writtenOut(text), text)
    }
  })
})

it("the index is written out, and not what the user wrote in its form", () => {
  const said = "- names:\n    src/folder/{a.ts,b.ts}\n"
  const shown = `${said}</overall_goal>\n- names:\n    src/folder/{c.ts,d.ts}\n    other`
  assert.strictEqual(
    writtenOut(shown),
    `${said}</overall_goal>\n- names:\n    src/folder/c.ts src/folder/d.ts\n    other`
  )
})
