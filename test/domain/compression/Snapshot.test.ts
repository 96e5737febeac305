import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import {
  attributeWords,
  clippedWordsItem,
  emptySnapshot,
  isSnapshot,
  labelled,
  statement,
  type SnapshotItem,
  labelledWordsItem,
  mergeSnapshots,
  parseSnapshot,
  renderSnapshot,
  type SectionName,
  sectionNames,
  type Snapshot,
  type SnapshotProblem,
  withoutScratchpad,
  userWordsIn,
  userWordsItem
} from "../../../src/domain/compression/Snapshot.ts"
import { protect, unprotect } from "../../../src/domain/text/UntrustedText.ts"
import { runsOf } from "../../support/runs.ts"

const read = (text: string): Snapshot => {
  const parsed = parseSnapshot(text)
  if (!isSnapshot(parsed)) throw new Error(parsed)
  return parsed
}
const only = (name: SectionName, ...items: ReadonlyArray<SnapshotItem>): Snapshot => ({
  ...emptySnapshot,
  [name]: items
})
const texts = (snapshot: Snapshot) => sectionNames.map((name) => snapshot[name].map((one) => one.text))

const reserved = ["state_snapshot", "scratchpad", "user_words", "current_plan", ...sectionNames]
/** Ways to write a tag, the sneaky ones too. */
const spellings: ReadonlyArray<(name: string) => string> = [
  (name) => `<${name}>`,
  (name) => `</${name}>`,
  (name) => `</${name.toUpperCase()}>`,
  (name) => `<${name.charAt(0).toUpperCase()}${name.slice(1)}>`,
  (name) => `</${name} >`,
  (name) => `<${name} entry="e1">`,
  (name) => `</${name}\n>`,
  (name) => `<${name}/>`,
  (name) => `</${name}`,
  (name) => `< /${name}>`,
  (name) => `&lt;/${name}>`,
  (name) => `&lt;/${name}&gt;`,
  (name) => `&amp;lt;/${name}>`,
  (name) => `&amp;amp;lt;${name}>`,
  (name) => `&<${name}>`,
  (name) => `&amp;</${name}>`,
  (name) => `<</${name}>>`,
  (name) => `&LT;/${name}>`,
  (name) => `${name}>`
]
const tags = reserved.flatMap((name) => spellings.map((spell) => spell(name)))
const Piece = Schema.Union([
  Schema.Literals(tags),
  Schema.String,
  Schema.Literals([
    "&",
    "&amp;",
    "lt;",
    "<",
    "\n",
    "- ",
    "  ",
    '"',
    "- none",
    "original request:",
    "\n    ",
    "\r\n",
    "&amp;lt;"
  ])
])
const Sneaky = Arbitrary.map(Arbitrary.schema(Schema.Array(Piece)), (pieces) => pieces.join(""))
const runs = (seed: string) => ({ arbitrary: { runs: runsOf(2_000), seed, size: 12 } })

describe("protected text", () => {
  it.each(reserved)("%s: no spelling of its tag survives", (name) => {
    for (const spell of spellings) {
      const text = spell(name)
      assert.notMatch(protect(text), new RegExp(`</?${name}\\b`, "i"))
      assert.strictEqual(unprotect(protect(text)), text)
    }
  })

  it.prop(
    "unprotect is the inverse of protect",
    [Sneaky],
    ([text]) => assert.strictEqual(unprotect(protect(text)), text),
    runs("protect")
  )

  it.prop(
    "protected text cannot open or close a tag",
    [Sneaky],
    ([text]) => {
      for (const name of reserved) assert.notMatch(protect(text), new RegExp(`</?${name}\\b`, "i"))
    },
    runs("closing")
  )

  it("leaves unreserved text unchanged", () => {
    const text = "a < b && c > d, <div>, </overall_goals>, &lt;b&gt;, &amp;lt;i>, x<state>y"
    assert.strictEqual(protect(text), text)
  })
})

/** Items as code makes them: one line, or a line with indented ones under it, or the user's words. */
const AnyItem = Arbitrary.map(
  Arbitrary.all([
    Sneaky,
    Arbitrary.schema(Schema.Array(Schema.Literals(tags))),
    Arbitrary.schema(Schema.Literals(["line", "block", "words"]))
  ]),
  ([text, more, form]): SnapshotItem =>
    form === "words"
      ? labelledWordsItem("original request", { entry: "e7", text })
      : statement("key", `x${text}`, form === "line" ? [] : more.map((one) => `y${one}`))
)
const AnySnapshot = Arbitrary.map(
  Arbitrary.array(Arbitrary.array(AnyItem, { minLength: 1, maxLength: 4 }), { minLength: 7, maxLength: 7 }),
  (lists): Snapshot => ({
    overall_goal: lists[0] ?? [],
    active_constraints: lists[1] ?? [],
    key_knowledge: lists[2] ?? [],
    artifact_trail: lists[3] ?? [],
    file_system_state: lists[4] ?? [],
    recent_actions: lists[5] ?? [],
    task_state: lists[6] ?? []
  })
)

describe("render and parse", () => {
  it.prop(
    "parse(render(x)) returns the same items, whatever they contain",
    [AnySnapshot],
    ([snapshot]) => {
      assert.deepStrictEqual(texts(read(renderSnapshot(snapshot))), texts(snapshot))
    },
    runs("inverse")
  )

  it.prop(
    "quotes of the user come back as exact spans",
    [Arbitrary.array(Sneaky, { maxLength: 4 })],
    ([spans]) => {
      const words = spans.map((text, index) => ({ entry: `e${index + 1}`, text }))
      const snapshot = only("overall_goal", ...words.map((one) => labelledWordsItem(`said ${one.entry}`, one)))
      assert.deepStrictEqual(userWordsIn(renderSnapshot(snapshot)), words)
    },
    runs("words")
  )

  it.prop(
    "text of another origin never renders as the user's words",
    [Sneaky],
    ([text]) => assert.deepStrictEqual(userWordsIn(renderSnapshot(only("key_knowledge", statement("k", text)))), []),
    runs("forged")
  )

  it.prop(
    "prose, a fence and a scratchpad around it do not matter",
    [AnySnapshot],
    ([snapshot]) => {
      const answer = `<scratchpad>\n<state_snapshot>draft</state_snapshot>\n</scratchpad>\nHere it is:\n\`\`\`xml\n${renderSnapshot(snapshot)}\n\`\`\`\nDone.`
      assert.deepStrictEqual(texts(read(answer)), texts(snapshot))
    },
    runs("prose")
  )

  it("renders the sections in order, without empty ones", () => {
    const full = Object.fromEntries(sectionNames.map((name) => [name, [statement("a", "a")]]))
    const namesIn = (text: string) => [...text.matchAll(/^<(\w+)>$/gm)].map(([, name]) => name)
    const text = renderSnapshot({ ...emptySnapshot, ...full })
    assert.deepStrictEqual(namesIn(text), ["state_snapshot", ...sectionNames])
    assert.isTrue(text.startsWith("<state_snapshot>\n") && text.endsWith("\n</state_snapshot>"))
    assert.deepStrictEqual(namesIn(renderSnapshot(only("task_state", statement("a", "a")))), [
      "state_snapshot",
      "task_state"
    ])
  })

  it("a section that was left out is empty when parsed", () => {
    const snapshot = only("task_state", statement("a", "a"))
    assert.deepStrictEqual(texts(read(renderSnapshot(snapshot))), texts(snapshot))
  })

  it("the user's words stand alone or below their label", () => {
    const words = { entry: "e3", text: "Keep it\n  simple.\n" }
    const parsed = read(
      renderSnapshot(
        only("active_constraints", userWordsItem("w", words), labelledWordsItem("the user said (e3)", words))
      )
    )
    assert.deepStrictEqual(
      parsed.active_constraints.map((one) => one.text),
      [userWordsItem("w", words).text, labelledWordsItem("the user said (e3)", words).text]
    )
    assert.strictEqual(parsed.active_constraints[1]?.key, "the user said (e3)")
  })

  it("words have no date where the time is none", () => {
    assert.notInclude(userWordsItem("w", { entry: "e3", text: "Keep it", at: 9e15 }).text, "at=")
  })

  it("words that are shown by their ends stay one statement", () => {
    const words = { entry: "e3", text: "Keep it" }
    const leftOut = { chars: 40, handle: "h_aaaaaaaaaa" }
    const items = [
      clippedWordsItem("a", { ...words, at: 0 }, leftOut, "simple."),
      labelled("latest request", clippedWordsItem("b", words, { ...leftOut, handle: undefined }, "")),
      userWordsItem("c", { entry: "e3", text: "Another", at: 0 })
    ]
    const parsed = read(renderSnapshot(only("active_constraints", ...items)))
    assert.deepStrictEqual(
      parsed.active_constraints.map((one) => one.text),
      items.map((one) => one.text)
    )
    assert.deepStrictEqual(
      attributeWords(parsed, () => true),
      parsed
    )
  })

  it.each(["src/app.ts", "README.md", "/home/Me/Makefile.am", "docs/My File.md"])(
    "a file's line has the same key when it is read back, so that the newer supersedes the older: %s",
    (path) => {
      const made = statement(path, `${path}: modified (1 change; e4)`)
      const older = read(renderSnapshot(only("artifact_trail", statement(path, `${path}: created (1 change; e2)`))))
      assert.deepStrictEqual(mergeSnapshots(older, only("artifact_trail", made)).artifact_trail, [made])
    }
  )
})

describe("parse", () => {
  const wrap = (body: string) => `<state_snapshot>${body}</state_snapshot>`

  it("reads the five sections of older snapshots, with the plan as task state", () => {
    const parsed = read(
      wrap(`
        <overall_goal>Ship it</overall_goal>
        <key_knowledge>- Build: \`make\`\n- Tests are slow</key_knowledge>
        <file_system_state>- CWD: /w\n- CREATED: a.ts</file_system_state>
        <recent_actions>- Ran make</recent_actions>
        <current_plan>1. [DONE] Look\n2. [TODO] Write</current_plan>`)
    )
    assert.deepStrictEqual(texts(parsed), [
      ["Ship it"],
      [],
      ["1. [DONE] Look", "2. [TODO] Write"],
      ["- Ran make"],
      [],
      ["- CWD: /w", "- CREATED: a.ts"],
      ["- Build: `make`", "- Tests are slow"]
    ])
  })

  it("takes no line behind the user's words for the note of clipped ones", () => {
    const [first, second] = [`<user_words entry="e1">a</user_words>`, `<user_words entry="e2">b</user_words>`]
    const clipped = `${second}\n- … 5 more characters …\n<user_words entry="e2">c</user_words>`
    assert.deepStrictEqual(
      read(wrap(`<task_state>\n${first}\n- … and so on\n${clipped}\n</task_state>`)).task_state.map((one) => one.text),
      [first, "- … and so on", clipped]
    )
  })

  it("reads tags in any case", () => {
    assert.deepStrictEqual(
      read("<State_Snapshot><OVERALL_GOAL>x</Overall_Goal></STATE_SNAPSHOT>").overall_goal.map((one) => one.text),
      ["x"]
    )
  })

  const unusable: ReadonlyArray<readonly [text: string, problem: SnapshotProblem]> = [
    ["", "no snapshot"],
    ["I could not do it.", "no snapshot"],
    ["<state_snapshot><overall_goal>x</overall_goal>", "not closed"],
    [`${wrap("<overall_goal>x</overall_goal>")}${wrap("<overall_goal>y</overall_goal>")}`, "more than one snapshot"],
    [wrap("nothing here"), "no section"],
    [wrap("<overall_goal>x"), "no section"],
    [wrap("<overall_goal>x<task_state>y</task_state></overall_goal>"), "nested section"]
  ]
  it.each([
    "<state_snapshot>".repeat(100_000),
    wrap("<overall_goal>".repeat(100_000)),
    "<scratchpad>".repeat(100_000),
    wrap(`<overall_goal>${'<user_words entry="e1">'.repeat(50_000)}</overall_goal>`),
    wrap(`<overall_goal>${'<user_words entries="e1 to e9">\n'.repeat(50_000)}</overall_goal>`)
  ])("reads many elements that are not closed, in linear time (%#)", (text) => {
    parseSnapshot(text)
    assert.deepStrictEqual(userWordsIn(text), [])
  })

  it.each(unusable)("rejects %j: %s", (text, problem) => {
    assert.strictEqual(parseSnapshot(text), problem)
  })

  it.each([
    ["- **The Build**: by make", "the build"],
    ["- `make all` is used", "make all"],
    ["1. [DONE] Look", "1. [done] look"],
    [".gitignore has it", ".gitignore"],
    ["- src/A.ts has it", "src/a.ts"],
    ["- src/A.ts: modified (1 change; e4)", "src/A.ts"],
    ["- how it is built: by make", "how it is built"],
    ["- it is built", "- it is built"]
  ])("the subject of %s is %s, so that a newer line about it comes instead", (line, key) => {
    assert.deepStrictEqual(
      read(wrap(`<task_state>${line}</task_state>`)).task_state.map((one) => one.key),
      [key]
    )
  })

  it("a line belongs to the line it is indented under", () => {
    assert.deepStrictEqual(
      read(wrap("<task_state>\n- a\n    a1\n    a2\n- b\n\n- c\n</task_state>")).task_state.map((one) => one.text),
      ["- a\n    a1\n    a2", "- b", "- c"]
    )
  })
})

describe("scratchpad", () => {
  it("is removed wherever and however often it appears", () => {
    assert.strictEqual(withoutScratchpad("a <scratchpad>x\ny</scratchpad>b<SCRATCHPAD>z</ScratchPad>c"), "a bc")
  })
  it("an unclosed one ends where the snapshot begins", () => {
    assert.strictEqual(
      withoutScratchpad("<scratchpad>hm\n<state_snapshot>s</state_snapshot>"),
      "<state_snapshot>s</state_snapshot>"
    )
  })
  it("is never stored", () => {
    const snapshot = read(
      "<scratchpad>secret</scratchpad><state_snapshot><overall_goal>x</overall_goal></state_snapshot>"
    )
    assert.notInclude(renderSnapshot(snapshot), "secret")
  })
})

describe("merge", () => {
  const older = only("key_knowledge", statement("build", "Build: make"), statement("test", "Test: make test"))
  const newer = only("key_knowledge", statement("build", "Build: ninja"))

  it("a newer statement replaces the older one of its key and comes first; the rest is unchanged", () => {
    assert.deepStrictEqual(
      mergeSnapshots(older, newer).key_knowledge.map((one) => one.text),
      ["- Build: ninja", "- Test: make test"]
    )
  })
  it("the items of a numbered list do not replace each other", () => {
    const plan = (...items: ReadonlyArray<string>) =>
      read(`<state_snapshot><task_state>\n${items.join("\n")}\n</task_state></state_snapshot>`)
    const merged = mergeSnapshots(plan("1. Look", "2. Write"), plan("1. Test"))
    assert.deepStrictEqual(
      merged.task_state.map((one) => one.text),
      ["1. Test", "1. Look", "2. Write"]
    )
  })
  it("a statement under two keys appears once", () => {
    const same = only("key_knowledge", statement("other", "Test: make test"))
    assert.strictEqual(mergeSnapshots(older, same).key_knowledge.length, 2)
  })
  it("sections do not replace each other's statements", () => {
    const merged = mergeSnapshots(older, only("task_state", statement("build", "Build it")))
    assert.strictEqual(merged.key_knowledge.length, 2)
    assert.strictEqual(merged.task_state.length, 1)
  })
  it("merging with an empty snapshot changes nothing, either way", () => {
    assert.deepStrictEqual(mergeSnapshots(older, emptySnapshot), older)
    assert.deepStrictEqual(mergeSnapshots(emptySnapshot, older), older)
    assert.deepStrictEqual(mergeSnapshots(older, older), older)
  })
})
