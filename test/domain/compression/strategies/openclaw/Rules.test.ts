import { assert, describe, it } from "@effect/vitest"
import { serialized } from "../../../../../src/domain/compression/SerializedConversation.ts"
import {
  audit,
  completed,
  headings,
  identifiersOf,
  shortfallText
} from "../../../../../src/domain/compression/strategies/openclaw/Audit.ts"
import { largeImages } from "../../../../../src/domain/compression/strategies/openclaw/LargeImages.ts"
import { openclaw, openclawPlan } from "../../../../../src/domain/compression/strategies/openclaw/OpenClaw.ts"
import { message } from "../../../../../src/domain/compression/strategies/openclaw/Prompts.ts"
import {
  beyondTurns,
  cacheMillis,
  cutResult,
  maxAllResultsChars,
  maxResultChars,
  pruning,
  type PruneOptions
} from "../../../../../src/domain/compression/strategies/openclaw/Prune.ts"
import {
  beyondShare,
  chunksOf,
  chunkTokens,
  groupsOf,
  halves,
  isOversized,
  needsStages,
  oversizedNote
} from "../../../../../src/domain/compression/strategies/openclaw/Stages.ts"
import {
  boundedFileLists,
  newestTurns,
  recentTurnsText,
  toolFailuresText,
  withSuffixes
} from "../../../../../src/domain/compression/strategies/openclaw/Suffix.ts"
import {
  call,
  type Content,
  model,
  outputText,
  response,
  text,
  user
} from "../../../../../src/domain/content/Content.ts"
import { entryId, viewItem } from "../../../../../src/domain/conversation/Conversation.ts"
import { shorten } from "../../../../../src/domain/conversation/ToolOutputShortening.ts"
import * as Work from "../../../../../src/domain/text/SlicedWork.ts"
import { entriesOf, handle } from "../../../../support/entries.ts"

/** The rules of OpenClaw as they are decided, one test a rule. `docs/strategies.md` lists them by these titles. */

const turn = (n: number, output: string): ReadonlyArray<Content> => [
  user(text(`question ${n}`)),
  model(call("read_file", { path: `f${n}` }, `c${n}`)),
  user(response("read_file", { output }, `c${n}`)),
  model(text(`answer ${n}`))
]

const turns = (count: number, output: string): ReadonlyArray<Content> =>
  Array.from({ length: count }, (_, n) => turn(n, output)).flat()

const pruned = (
  contents: ReadonlyArray<Content>,
  options: Partial<PruneOptions> & { readonly tokens?: number } = {}
) => {
  const items = entriesOf(contents, options.tokens ?? 100).map((entry) => viewItem({ ...entry, at: 0 }))
  const { shorten, ...rest } = Work.runSync(
    pruning(items, { window: 200_000, at: 0, cacheMillis: cacheMillis.short, ...options })
  )
  return {
    ...rest,
    texts: shorten.map(({ entry, replacement }) => [entry, outputText(replacement) ?? replacement.text])
  }
}

describe("the strategy openclaw: numbers", () => {
  it.each([
    [8_000, 6_000],
    [32_768, 24_576],
    [80_000, 60_000],
    [128_000, 108_000],
    [1_000_000, 980_000]
  ])(
    "openclaw: compacts from the window less 20,000 tokens, at most a quarter (OpenClaw 2026.9): window %d, from %d",
    (window, trigger) => {
      assert.strictEqual(openclaw.trigger(window), trigger)
    }
  )

  it("openclaw: keeps the newest 20,000 tokens (OpenClaw 2026.9; ours: at most half of what triggers a compaction)", () => {
    assert.deepStrictEqual([32_768, 128_000].map(openclawPlan.keepRecent), [12_288, 20_000])
  })

  it("openclaw: tries three times when the model refuses a request as too long (OpenClaw 2026.9)", () => {
    assert.strictEqual(openclaw.overflowAttempts, 3)
  })
})

describe("the strategy openclaw: before a request", () => {
  it.each([
    [8_000, 9_600],
    [50_000, 16_000],
    [100_000, 32_000],
    [200_000, 64_000]
  ])(
    "openclaw: bounds one result by 30 %% of the window, 16,000, 32,000 or 64,000 characters (OpenClaw 2026.9): window %d, %d",
    (window, chars) => {
      assert.strictEqual(maxResultChars(window), chars)
    }
  )

  it("openclaw: bounds all results by four times the bound of one, at least half of the window (OpenClaw 2026.9)", () => {
    assert.deepStrictEqual([8_000, 50_000, 200_000].map(maxAllResultsChars), [38_400, 100_000, 400_000])
  })

  it("openclaw: guards a request: one result up to half of the window, at two characters a token, and all up to three quarters (OpenClaw 2026.9; ours: the bounds above, which are below that in windows from 32,000 tokens on)", () => {
    for (const window of [32_000, 64_000, 128_000, 200_000, 1_000_000]) {
      assert.isAtMost(maxResultChars(window), 0.5 * window * 2)
      assert.isAtMost(maxAllResultsChars(window), 0.75 * window * 4)
    }
  })

  it("openclaw: cuts a result to its beginning, and keeps an end that tells how it went (OpenClaw 2026.9; ours: with a handle)", () => {
    const log = "line of a log\n".repeat(1_000)
    const plain = cutResult(log, 4_000, handle)
    assert.isBelow(plain.length, 4_200)
    assert.include(plain, `recall ${handle}`)
    assert.isTrue(plain.startsWith("line of a log\n"))
    assert.isTrue(cutResult(`${log}error: it broke`, 4_000, handle).endsWith("error: it broke"))
    assert.strictEqual(cutResult("short", 10, handle), "short")
    assert.isAtLeast(cutResult(log, 10, handle).length, 2_000)
  })

  it("openclaw: a result of which a part is shown is cut from the whole, and the note counts the whole (ours)", () => {
    const whole = `${"line of a log\n".repeat(20_000)}error: it broke`
    const shown = shorten(whole, handle, "head-tail-chars")
    const cut = cutResult(shown, 4_000, handle, () => whole)
    assert.notInclude(cut, "of 280015 characters")
    const [head = "", count = "", tail = ""] = cut.split(/\n\[.*?\] (\d+) more characters were cut.*\n/)
    assert.strictEqual(head.length + Number(count) + tail.length, whole.length)
  })

  it("openclaw: a result that was cut is not cut again at the same bound, so that the beginning of requests stays (ours)", () => {
    for (const end of ["", "error: it broke"]) {
      const cut = cutResult(`${"line of a log\n".repeat(1_000)}${end}`, 4_000, handle)
      assert.strictEqual(cutResult(cut, 4_000, handle), cut)
    }
  })

  it("openclaw: trims old results once the prompt cache is cold and the window is filled to 30 % (OpenClaw 2026.9)", () => {
    const output = "x".repeat(6_000)
    const cold = { at: cacheMillis.short, window: 20_000, tokens: 400 }
    const { texts } = pruned(turns(6, output), cold)
    assert.deepStrictEqual(
      texts.map(([entry]) => entry),
      ["e3", "e7", "e11", "e15", "e19"]
    )
    assert.match(String(texts[0]?.[1]), /^x{1500}\n…\nx{1500}\n.*Shortened from 6000 characters.* recall /)
    assert.deepStrictEqual(pruned(turns(6, output), { ...cold, at: cacheMillis.short - 1 }).texts, [])
    // From 30 % of the window on, and not below.
    const [least, most] = [6 * 4 * 400, 6 * 4 * 400].map((tokens) => Math.floor(tokens / 0.3))
    assert.isNotEmpty(pruned(turns(6, output), { ...cold, window: least ?? 0 }).texts)
    assert.isEmpty(pruned(turns(6, output), { ...cold, window: (most ?? 0) + 2 }).texts)
    assert.deepStrictEqual(cacheMillis, { short: 300_000, long: 3_600_000 })
    assert.deepStrictEqual(pruned(turns(6, output), { ...cold, window: 200_000 }).texts, [])
  })

  it("openclaw: leaves the results of the last three answers alone (OpenClaw 2026.9)", () => {
    const output = "x".repeat(6_000)
    const { texts } = pruned(turns(2, output), { at: cacheMillis.short, window: 4_000, tokens: 400 })
    assert.deepStrictEqual(
      texts.filter(([, shown]) => String(shown).includes("Shortened")).map(([entry]) => entry),
      ["e3"]
    )
  })

  it("openclaw: clears old results, oldest first, from half of the window and 50,000 characters (OpenClaw 2026.9; ours: the placeholder names the handle)", () => {
    const output = "y".repeat(3_900)
    const { texts } = pruned(turns(20, output), { at: cacheMillis.short, window: 30_000, tokens: 250 })
    const cleared = texts.filter(([, shown]) => String(shown).includes("was cleared"))
    assert.isAtLeast(cleared.length, 3)
    assert.strictEqual(cleared[0]?.[0], "e3")
    assert.isTrue(cleared.every(([, shown]) => String(shown).includes(`recall ${handle}`)))
  })

  it("openclaw: clears the oldest results when all together are beyond their bound (OpenClaw 2026.9)", () => {
    const output = "z".repeat(9_000)
    const { texts } = pruned(turns(8, output), { window: 8_000 })
    assert.strictEqual(texts[0]?.[0], "e3")
    assert.isBelow(
      texts.reduce((sum, [, shown]) => sum + String(shown).length, 0) + (8 - texts.length) * 9_000,
      maxAllResultsChars(8_000) + 9_000
    )
  })

  it("openclaw: does not clear the results of the last message (ours)", () => {
    const contents = [...turns(1, "y".repeat(9_000)), ...turn(1, "z".repeat(9_000)).slice(0, 2)]
    const last = user(...Array.from({ length: 6 }, () => response("read_file", { output: "z".repeat(9_000) }, "c1")))
    const { texts } = pruned([...contents, last], { window: 8_000 })
    assert.deepStrictEqual(
      texts.map(([entry]) => entry),
      ["e3"]
    )
  })

  it("openclaw: shows media of the three newest finished turns, and notes for older ones (OpenClaw 2026.9; ours: with a handle)", () => {
    const image = { inlineData: { mimeType: "image/png", data: "AAAA" } }
    const contents = Array.from({ length: 5 }, (_, n) => [user(text(`look ${n}`), image), model(text("seen"))]).flat()
    const { texts } = pruned(contents)
    assert.deepStrictEqual(
      texts.map(([entry]) => entry),
      ["e1", "e3"]
    )
    assert.include(String(texts[0]?.[1]), `A file stood here. The whole output: recall ${handle}`)
  })

  it.each([
    [1_200, 1_200, undefined],
    [1_201, 600, [1_200, 600]],
    [4_000, 3_000, [1_200, 900]],
    [100, 2_400, [50, 1_200]],
    [60_000, 1, [1_200, 1]]
  ] as const)(
    "openclaw: reduces images to sides of at most 1,200 pixels (OpenClaw 2026.9; ours: the original stays recallable): %d × %d",
    (width, height, target) => {
      const bytes = new DataView(new ArrayBuffer(32))
      for (const [index, byte] of [0x89, ...Buffer.from("PNG\r\n\x1a\n")].entries()) bytes.setUint8(index, byte)
      for (const [index, byte] of Buffer.from("IHDR").entries()) bytes.setUint8(12 + index, byte)
      bytes.setUint32(16, width)
      bytes.setUint32(20, height)
      const inlineData = { mimeType: "image/png", data: Buffer.from(bytes.buffer).toString("base64") }
      const found = largeImages(entriesOf([user(text("look"), { inlineData })]).map(viewItem))
      assert.deepStrictEqual(
        found.map(({ part, target: { height: high, width: wide } }) => [part, wide, high]),
        target === undefined ? [] : [[1, ...target]]
      )
    }
  )

  it("openclaw: changes nothing more when it is asked again (ours: projections are stored with the conversation)", () => {
    const contents = turns(8, "z".repeat(9_000))
    const items = entriesOf(contents).map(viewItem)
    const options = { window: 8_000, at: 0, cacheMillis: cacheMillis.short }
    const { shorten } = Work.runSync(pruning(items, options))
    const replaced = contents.map((content, index) => ({
      ...content,
      parts: content.parts.map(
        (part, at) =>
          shorten.find(({ entry, part: place }) => entry === entryId(index + 1) && place === at)?.replacement ?? part
      )
    }))
    assert.deepStrictEqual(Work.runSync(pruning(entriesOf(replaced).map(viewItem), options)).shorten, [])
  })

  it.each([
    [15, 15],
    [16, 10],
    [17, 11],
    [22, 10]
  ])(
    "openclaw: with ten turns allowed, drops turns in batches beyond fifteen (OpenClaw 2026.9): of %d stay %d",
    (count, stay) => {
      const items = entriesOf(Array.from({ length: count }, (_, n) => turn(n, "o")).flat()).map(viewItem)
      const dropped = beyondTurns(items, 10)
      assert.strictEqual(dropped, stay === count ? undefined : entryId((count - stay) * 4))
    }
  )
})

describe("the strategy openclaw: stages", () => {
  it("openclaw: keeps calls and their results in one group (OpenClaw 2026.9)", () => {
    const groups = groupsOf(entriesOf(turns(2, "o")))
    assert.deepStrictEqual(
      groups.map(({ entries }) => entries.length),
      [1, 2, 1, 1, 2, 1]
    )
  })

  it("openclaw: fills chunks of 0.4 of the window, down to 0.15 for large messages, with a margin of 1.2 (OpenClaw 2026.9)", () => {
    const small = groupsOf(entriesOf(turns(10, "o"), 100))
    const medium = groupsOf(entriesOf(turns(10, "o"), 10_000))
    const large = groupsOf(entriesOf(turns(10, "o"), 30_000))
    assert.strictEqual(chunkTokens(small, 100_000), Math.floor((40_000 - 4_096) / 1.2))
    assert.strictEqual(chunkTokens(medium, 100_000), Math.floor((16_000 - 4_096) / 1.2))
    assert.strictEqual(chunkTokens(large, 100_000), Math.floor((15_000 - 4_096) / 1.2))
    const chunks = chunksOf(small, 350)
    assert.isAbove(chunks.length, 5)
    assert.deepStrictEqual(chunks.flat(), small)
    assert.isTrue(chunks.every((chunk) => chunk.reduce((sum, { tokens }) => sum + tokens, 0) <= 350))
  })

  it("openclaw: writes stages for what does not fit one chunk, in two parts of like size (OpenClaw 2026.9)", () => {
    const groups = groupsOf(entriesOf(turns(10, "o"), 100))
    assert.isTrue(needsStages(groups, 500))
    assert.isFalse(needsStages(groups, 50_000))
    assert.isFalse(needsStages(groupsOf(entriesOf(turn(1, "o").slice(0, 3), 1_000)), 500))
    const [first, second] = halves(groups)
    assert.deepStrictEqual([...first, ...second], groups)
    const size = (part: typeof first) => part.reduce((sum, { tokens }) => sum + tokens, 0)
    assert.isAtMost(Math.abs(size(first) - size(second)), 200)
  })

  it("openclaw: notes a group that takes more than half of the window instead of sending it (OpenClaw 2026.9)", () => {
    const [group] = groupsOf(entriesOf([user(text("big"))], 50_000))
    assert.isDefined(group)
    assert.isTrue(isOversized(group, 100_000))
    assert.isFalse(isOversized(group, 200_000))
    assert.strictEqual(oversizedNote(group), "[A large message (about 50K tokens) was left out of this summary]")
  })

  it("openclaw: summarises on its own what is beyond half of the window, oldest first (OpenClaw 2026.9)", () => {
    const groups = groupsOf(entriesOf(turns(16, "o"), 100))
    const [older, rest] = beyondShare(groups, 2_000)
    assert.deepStrictEqual([...older, ...rest], groups)
    assert.isAtMost(
      rest.reduce((sum, { tokens }) => sum + tokens, 0),
      2_000
    )
    assert.deepStrictEqual(beyondShare(groups, 1_000_000), [[], groups])
  })

  it("openclaw: shows 2,000 characters of a result, with up to 600 of an end that looks like an error, and no thoughts (OpenClaw 2026.9)", () => {
    const output = `${"a".repeat(9_000)}\nfatal: no such branch`
    const contents = [model(call("sh", {}, "c")), user(response("sh", { output }, "c"))]
    const options = { maxResultChars: 2_000, maxErrorTailChars: 600, thoughts: false, media: true }
    const shown = Work.runSync(serialized(entriesOf(contents), options))
    assert.isBelow(shown.length, 2_200)
    assert.isTrue(shown.endsWith("fatal: no such branch"))
    const thinking = { role: "model" as const, parts: [{ text: "hmm", thought: true }, text("said")] }
    assert.strictEqual(Work.runSync(serialized(entriesOf([thinking]), options)), "[Assistant]: said")
  })

  it("openclaw: passes a focus as data, at most 800 characters (OpenClaw 2026.9)", () => {
    const body = message("c", "p", { focus: "keep ".repeat(400) })
    const focus = /<focus>\n([\s\S]*)\n<\/focus>/.exec(body)?.[1] ?? ""
    assert.strictEqual(focus.length, 800)
  })
})

describe("the strategy openclaw: audit", () => {
  const whole = `${headings.join("\nNone.\n")}\nThe deploy of the billing service failed at src/pay.ts`

  it("openclaw: asks for five sections (OpenClaw 2026.9)", () => {
    assert.strictEqual(headings.length, 5)
    assert.deepStrictEqual(audit("## Decisions", { ask: "", identifiers: [] })?.headings, headings.slice(1))
    const fewer = headings.slice(1).join("\n")
    assert.deepStrictEqual(audit(fewer, { ask: "", identifiers: ["a/b"] }), {
      headings: headings.slice(0, 1),
      identifiers: ["a/b"],
      ask: false
    })
  })

  it("openclaw: takes twelve identifiers of the newest messages: addresses, paths, hosts, hashes, numbers (OpenClaw 2026.9)", () => {
    const texts = [
      "see https://example.com/a?b=1, src/pay.ts and C:\\work\\x.ts",
      "db.local:5432 at 0123abcdef, order 1234567."
    ]
    assert.sameMembers(
      [...identifiersOf(texts)],
      ["https://example.com/a?b=1", "src/pay.ts", "C:\\work\\x.ts", "db.local:5432", "0123abcdef", "1234567"]
    )
    assert.strictEqual(identifiersOf([Array.from({ length: 40 }, (_, n) => `src/file${n}.ts`).join(" ")]).length, 12)
  })

  it("openclaw: demands every identifier, hexadecimal ones in any case (OpenClaw 2026.9)", () => {
    const summary = `${whole}\nABCDEF12`
    assert.isUndefined(audit(summary, { ask: "", identifiers: ["src/pay.ts", "abcdef12"] }))
    assert.deepStrictEqual(audit(summary, { ask: "", identifiers: ["src/Pay.ts"] })?.identifiers, ["src/Pay.ts"])
  })

  it("openclaw: demands words of what was asked last: one, or two of three and more (OpenClaw 2026.9)", () => {
    assert.isUndefined(audit(whole, { ask: "Why did the deploy of billing fail?", identifiers: [] }))
    assert.isTrue(audit(whole, { ask: "Translate the French manual", identifiers: [] })?.ask)
    assert.isUndefined(audit(whole, { ask: "billing", identifiers: [] }))
  })

  it("openclaw: completes by code what a second try still lacks (OpenClaw 2026.9; ours: it gives up there, which fails with small models)", () => {
    const lacking = audit("## Decisions\nUse Effect.", { ask: "Translate the manual", identifiers: ["src/pay.ts"] })
    assert.isDefined(lacking)
    const made = completed("## Decisions\nUse Effect.", lacking, "Translate the manual")
    assert.isUndefined(audit(made, { ask: "Translate the manual", identifiers: ["src/pay.ts"] }))
    assert.include(shortfallText(lacking), "src/pay.ts")
  })
})

describe("the strategy openclaw: what code adds", () => {
  it("openclaw: shows the last three turns word for word, 600 characters a message (OpenClaw 2026.9)", () => {
    const entries = entriesOf(turns(6, "o".repeat(2_000)))
    const shown = entries.filter(({ id }) => newestTurns(entries).has(id))
    assert.strictEqual(shown.length, 12)
    const lines = recentTurnsText(shown).split("\n")
    assert.strictEqual(lines[1], "- User: question 3")
    assert.isTrue(lines.every((line) => line.length < 640))
    assert.strictEqual(newestTurns(entriesOf(turns(2, "o"))).size, 7)
  })

  it("shows of a message its text, the names of its calls and its results, without thoughts, and who wrote it", () => {
    const [first, ...rest] = entriesOf([
      user(text("Go.")),
      model({ text: "hidden", thought: true }, text("I look."), call("ls", {}, "1"), call("cat", {}, "2")),
      user(response("ls", { output: "a.ts" }, "1"), response("cat", { output: "x" }, "2")),
      model({ text: "hidden", thought: true }),
      model(text("y".repeat(600))),
      model(text("z".repeat(601)))
    ])
    const program = first === undefined ? [] : [first, { ...first, author: "program" as const }]
    assert.deepStrictEqual(recentTurnsText([...program, ...rest]).split("\n"), [
      "## Recent turns",
      "- User: Go.",
      "- Program: Go.",
      "- Assistant: I look. [calls ls] [calls cat]",
      "- User: [result of ls] a.ts [result of cat] x",
      `- Assistant: ${"y".repeat(600)}`,
      `- Assistant: ${"z".repeat(600)}…`
    ])
    assert.strictEqual(recentTurnsText([]), "")
  })

  it("openclaw: lists the last eight failures of tools, 240 characters each, with the exit code (OpenClaw 2026.9)", () => {
    const failed = (n: number) => [
      model(call("run_shell_command", { command: `make ${n}` }, `c${n}`)),
      user(response("run_shell_command", { error: `Exit code: 2\nerror ${n}: ${"why ".repeat(200)}` }, `c${n}`))
    ]
    const made = toolFailuresText(entriesOf(Array.from({ length: 12 }, (_, n) => failed(n)).flat()))
    const lines = made.split("\n").slice(1)
    assert.strictEqual(lines.length, 8)
    assert.isTrue(lines.every((line) => line.length <= 240 && line.startsWith("- run_shell_command (exit 2): error ")))
    assert.strictEqual(toolFailuresText(entriesOf(turns(2, "fine"))), "")
  })

  it("openclaw: bounds a list of files to 900 characters, both to 2,000 (OpenClaw 2026.9)", () => {
    const files = Array.from({ length: 200 }, (_, n) => `src/some/folder/file${n}.ts`)
    const made = boundedFileLists({ read: files, modified: files })
    assert.isBelow(made.length, 2_100)
    assert.match(made, /… and \d+ more\n<\/modified-files>$/)
  })

  it("openclaw: keeps a summary within 16,000 characters, of which the model's text has half at least (OpenClaw 2026.9)", () => {
    const made = withSuffixes("m".repeat(20_000), ["s".repeat(7_000), "t".repeat(7_000)])
    assert.isAtMost(made.length, 16_000)
    assert.include(made, "[… the summary was cut here]")
    assert.isAtLeast(made.split("m").length - 1, 8_000)
    assert.isTrue(made.endsWith("s"))
    assert.strictEqual(withSuffixes("short", ["a", "", "b"]), "short\n\na\n\nb")
  })
})

it("the newest turns are whole where there are three or more, and else the last messages", () => {
  const shown = (count: number) => [...newestTurns(entriesOf(turns(count, "x")))].length
  assert.deepStrictEqual([1, 2, 3, 4].map(shown), [4, 7, 12, 12])
})
