import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, Path, Schema } from "effect"
import { escape } from "effect/RegExp"
import { createHash } from "node:crypto"
import { gunzipSync } from "node:zlib"
import { checksOf } from "../../../src/domain/compression/evidence/Commands.ts"
import { type Evidence, gatherEvidence, type LastCall } from "../../../src/domain/compression/evidence/Evidence.ts"
import { isLook } from "../../../src/domain/compression/evidence/ReadOnlyCommands.ts"
import { afterView, withoutView } from "../../../src/domain/compression/evidence/ReadOnlyCommands.ts"
import { leavesMore } from "../../../src/domain/compression/evidence/ReadOnlyCommands.ts"
import { witnessOf } from "../../../src/domain/compression/evidence/UserRequests.ts"
import { composeSnapshot, type ExtractedSnapshot } from "../../../src/domain/compression/handover/Extractive.ts"
import {
  isSnapshot,
  parseSnapshot,
  type SectionName,
  sectionNames,
  userWordsIn
} from "../../../src/domain/compression/Snapshot.ts"
import { writtenOut } from "../../../src/domain/compression/SnapshotShorthand.ts"
import { call, hasResponses, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entries, type Entry } from "../../../src/domain/conversation/Conversation.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { unprotect } from "../../../src/domain/text/UntrustedText.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { load } from "../../../src/services/transcripts/Transcripts.ts"
import { entryOf } from "../../support/entries.ts"
import { indexedNames } from "../../support/indexedNames.ts"
import { isUnitTier } from "../../support/runs.ts"
import { assert, describe, expect, it, layer } from "../../support/vitest.ts"

/**
 * What code reads out of recorded conversations, against a second reading of the same files that shares nothing with it:
 * test/golden/compute.py, whose rules its head tells.
 */

const services = Layer.mergeAll(NodeServices.layer, MemoryTempStore.layer, TokenCounter.layerEstimate)

const FileFact = Schema.Struct({
  state: Schema.Literals(["read", "created", "modified", "deleted"]),
  reads: Schema.Natural,
  changes: Schema.Natural,
  how: Schema.Array(Schema.String)
})
const Golden = Schema.Struct({
  said: Schema.Array(Schema.String),
  originalRequest: Schema.String,
  latestRequest: Schema.String,
  files: Schema.Record(Schema.String, FileFact),
  commands: Schema.Array(
    Schema.Struct({ command: Schema.String, exit: Schema.NullOr(Schema.Int), times: Schema.Natural })
  ),
  failures: Schema.Array(
    Schema.Struct({ tool: Schema.String, target: Schema.NullOr(Schema.String), lines: Schema.Array(Schema.String) })
  ),
  todos: Schema.NullOr(Schema.Array(Schema.Struct({ text: Schema.String, status: Schema.String }))),
  recent: Schema.Array(
    Schema.Struct({ tool: Schema.String, target: Schema.NullOr(Schema.String), failed: Schema.Boolean })
  )
})
type Golden = typeof Golden.Type

const looking = /^(?:read|grep|glob|search|find|list|ls)/i
/** The failures of calls that do more than look. */
const lastingFailures = ({ failures }: Golden) => failures.filter(({ tool }) => !looking.test(tool))

const decodeGolden = Schema.decodeUnknownEffect(Schema.fromJsonString(Golden))

const read = Effect.fnUntraced(function* (relative: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return yield* fs.readFile(yield* path.fromFileUrl(new URL(relative, import.meta.url)))
})

interface Gathered {
  readonly log: ReadonlyArray<Entry>
  readonly evidence: Evidence
  readonly golden: Golden
}

/** A file is read once: what was gathered from it is never changed. */
const known = new Map<string, Gathered>()

const gathered = Effect.fnUntraced(function* (name: string) {
  const before = known.get(name)
  if (before !== undefined) return before
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const contents = name.startsWith("gemini")
  const bytes = contents
    ? yield* read(`../../fixtures/contents/${name}.json`)
    : gunzipSync(yield* read(`../../fixtures/sessions/${name}.jsonl.gz`))
  const file = path.join(yield* fs.makeTempDirectoryScoped(), name)
  yield* fs.writeFile(file, bytes)
  const { session } = yield* load(file)
  const golden = yield* decodeGolden(new TextDecoder().decode(yield* read(`../../golden/${name}.json`)))
  const log = entries(session.conversation)
  const found: Gathered = { log, evidence: Work.runSync(gatherEvidence(log)), golden }
  known.set(name, found)
  return found
})

/** The middle of a log, where the user speaks and no call waits for its answer. */
const middle = (log: ReadonlyArray<Entry>): number => {
  const half = Math.floor(log.length / 2)
  const begins = (entry: Entry) => entry.content.role === "model" || !hasResponses(entry.content)
  const after = log.findIndex((entry, index) => index >= half && begins(entry))
  return after < 0 ? half : after
}

/** What is known when the first half was compressed before. */
const gatherTwice = (log: ReadonlyArray<Entry>): Evidence => {
  const cut = middle(log)
  const earlier = composed(Work.runSync(gatherEvidence(log.slice(0, cut))), ample)
  const summary = entryOf(log.length + 100, user(text(earlier.text)), {
    author: "summary",
    tokens: [estimateText(earlier.text)]
  })
  // What the snapshot quotes is looked up in the whole log, as the workflow does.
  return Work.runSync(
    gatherEvidence([summary, ...log.slice(cut)], { userWords: witnessOf(log), earlier: log.slice(0, cut) })
  )
}

const gatheredLogs = new WeakMap<ReadonlyArray<Entry>, Evidence>()
const gatheredTwice = (log: ReadonlyArray<Entry>): Evidence => {
  const found = gatheredLogs.get(log) ?? gatherTwice(log)
  gatheredLogs.set(log, found)
  return found
}

/** What only a reader sees who knows more than the file tools, `>`, `rm` and `mv`. */
const subtle = new Set(["cp", "sed -i", "tee", "replace, new file"])
const isSubtle = ({ how }: typeof FileFact.Type): boolean => how.some((name) => subtle.has(name))

const filesWhere = (golden: Golden, which: (fact: typeof FileFact.Type) => boolean) =>
  Object.fromEntries(
    Object.entries(golden.files).flatMap(([path, fact]) =>
      which(fact) ? [[path, { state: fact.state, changes: fact.changes }]] : []
    )
  )
const filesIn = (evidence: Evidence, which: (path: string) => boolean) =>
  Object.fromEntries(
    [...evidence.files].flatMap(([path, { changes, state }]) => (which(path) ? [[path, { state, changes }]] : []))
  )

/** What a call was about; of one that failed and so did nothing, what stands behind its tool's name. */
const targetOf = ({ action, failed, tool }: LastCall): string | null =>
  "path" in action
    ? action.path
    : action._tag === "Command"
      ? action.command
      : action._tag === "Other" && failed
        ? action.summary.slice(tool.length + 1) || null
        : null

/** The last call. */
const lastCalls = ({ lastCall }: Evidence) =>
  lastCall === undefined ? [] : [{ tool: lastCall.tool, target: targetOf(lastCall), failed: lastCall.failed }]

const oneLine = (text: string, length: number): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > length ? line.slice(0, length) : line
}

/** Whether `line` is one of the lines of a failure, or the beginning of a long one. Gemini CLI's label is no part of a line. */
const isLineOf = (lines: ReadonlyArray<string>, line: string): boolean =>
  lines
    .map((whole) => whole.replace(/^Output: /, ""))
    .some((whole) => whole === line || (line.length >= 240 && whole.startsWith(line)))

/** Snapshots with room for everything: each is composed once. */
const composedWhole = new WeakMap<Evidence, ExtractedSnapshot>()

const composed = (evidence: Evidence, budget: number): ExtractedSnapshot => {
  const found = budget === ample ? composedWhole.get(evidence) : undefined
  if (found !== undefined) return found
  const made = Work.runSync(composeSnapshot(evidence, { budget, kept: [] }))
  if (budget === ample) composedWhole.set(evidence, made)
  return made
}

/** The body of each section, as the text has it. */
const sectionsOf = (rendered: string): Readonly<Record<SectionName, string>> => {
  const text = writtenOut(rendered)
  const body = (name: SectionName) => {
    const pieces = text.split(new RegExp(`^</?${name}>$`, "m"))
    // A section without statements is left out.
    if (pieces.length > 1) assert.strictEqual(pieces.length, 3, `${name} stands there once`)
    return pieces[1] ?? ""
  }
  return {
    overall_goal: body("overall_goal"),
    active_constraints: body("active_constraints"),
    key_knowledge: body("key_knowledge"),
    artifact_trail: body("artifact_trail"),
    file_system_state: body("file_system_state"),
    recent_actions: body("recent_actions"),
    task_state: body("task_state")
  }
}

/** A command in the list of commands, with its result unless it succeeded. */
const commandLine = /^ {4}(.+?)(?: → (?:exit (-?\d+)|no clear result|did not succeed|failed) \(e\d[^)]*\))?$/gm

/** The beginning of a command as the list shows it, without here-documents and what only chooses lines of its output. */
const commandShown = (command: string): string =>
  withoutView(oneLine(command.replace(/<<-?\s*['"]?\w+['"]?[\s\S]*/, "<<…"), 400)).slice(0, 120)

/** Whether a line shows a command: whole, clipped, or without what only chooses which lines of its output are shown. */
const isShownAs = (command: string, shown: string): boolean => {
  const whole = oneLine(command.replace(/<<-?\s*['"]?\w+['"]?[\s\S]*/, "<<…"), 10_000)
  return (
    whole === shown ||
    (shown.endsWith("…") && whole.startsWith(shown.slice(0, -1))) ||
    (whole.startsWith(shown) && afterView(whole.slice(shown.length)).trim() === "")
  )
}

const listedBelow = (section: string, heading: string, usual: string): Array<readonly [path: string, state: string]> =>
  (section.split(heading)[1]?.split("\n- ")[0] ?? "").split("\n").flatMap((line) => {
    const [, path, state = usual] = /^ {4}(.*?)(?: h_[a-z2-7]+)?(?: \((\w+)\))?$/.exec(line) ?? []
    return path === undefined ? [] : [[path, state] as const]
  })

/** Every file that the text lists, with its state. */
const filesShown = (sections: Readonly<Record<SectionName, string>>): Array<readonly [path: string, state: string]> => [
  ...listedBelow(sections.artifact_trail, "- changed:\n", "modified"),
  ...listedBelow(sections.file_system_state, "- read, but not changed:\n", "read")
]

/** Everything the text claims that the golden file denies. */
const contradictions = (text: string, golden: Golden): Array<string> => {
  const sections = sectionsOf(text)
  const wrong: Array<string> = []
  for (const [path, state] of filesShown(sections)) {
    const fact = golden.files[path]
    if (fact?.state !== state) wrong.push(`${path} is ${fact?.state ?? "unknown"}, not ${state}`)
  }
  for (const [
    line,
    shown = "",
    exit = / → (?:no clear result|did not succeed) \(/.test(line) ? undefined : "0"
  ] of sections.recent_actions.matchAll(commandLine)) {
    // What only chooses which lines of an output are shown may be left out, so several runs may be meant.
    const codes = golden.commands
      .filter(({ command }) => isShownAs(command, shown))
      .map((command) => (command.exit === null ? undefined : String(command.exit)))
    if (codes.length === 0) wrong.push(`nobody ran ${shown}`)
    else if (!codes.includes(exit)) wrong.push(`${shown} ended with ${codes.join()}, not ${exit}`)
  }
  for (const words of userWordsIn(text)) {
    if (!golden.said.some((said) => said.includes(words.text))) wrong.push(`the user never said: ${words.text}`)
  }
  const lists = golden.todos ?? []
  for (const [, status, todo = ""] of sections.task_state.matchAll(/^- \[(\w+)\] (.+)$/gm)) {
    const filed = /^issue \S+: (.+?)…?$/.exec(todo)?.[1]
    if (filed !== undefined) {
      const isKnown = golden.commands.some(
        ({ command, exit }) => exit === 0 && unprotect(filed) !== "" && command.includes(unprotect(filed))
      )
      if (!isKnown) wrong.push(`nobody filed ${todo}`)
      continue
    }
    const known = lists.find(({ text }) => todo.replace(/…$/, "") === oneLine(text, 240).replaceAll("<", "&lt;"))
    if (known?.status !== status) wrong.push(`${todo} is ${known?.status ?? "no todo"}, not ${status}`)
  }
  for (const [, what = "", lines = ""] of sections.task_state.matchAll(
    /^- unresolved failure of (.+?) \(e\d[^)]*\):\n((?: {4}.*\n)+)/gm
  )) {
    for (const line of lines.trimEnd().split("\n")) {
      const known = golden.failures.some((failure) =>
        isLineOf(
          failure.lines.map((one) => one.replaceAll("\t", " ")),
          line.trim().replaceAll("\t", " ")
        )
      )
      if (!known) wrong.push(`not a line of an unresolved failure (${what}): ${line.trim()}`)
    }
  }
  return wrong
}

const fixtures = [
  "claude-code-1512-lines",
  "claude-code-subagent",
  "claude-code-tools",
  "pi-1019-lines",
  "gemini-parser-fix"
]
/** More than everything of any of them takes, so that nothing is left out for want of room. */
const ample = 1_000_000

/** The digest of a value as JSON, with maps and sets as lists. */
const digest = (value: unknown): string => {
  const plain = (_: string, each: unknown) => (each instanceof Map || each instanceof Set ? [...each] : each)
  return createHash("sha256")
    .update(JSON.stringify(value, plain) ?? "")
    .digest("hex")
    .slice(0, 6)
}

/** The names, numbers and places in each section of a snapshot: all that is no sentence of ours. */
const skeleton = ({ text }: ExtractedSnapshot): Readonly<Record<string, ReadonlyArray<string>>> =>
  Object.fromEntries(
    Object.entries(sectionsOf(text)).map(([name, body]) => [
      name,
      body.match(/[^\s"'(),:;]*[\d/_.…][^\s"'(),:;]*/g) ?? []
    ])
  )

layer(services)((it) => {
  /** A test of what was gathered from a recording. */
  const holds = (rule: string, name: string, check: (found: Gathered) => void) =>
    it.effect(rule, () => Effect.map(gathered(name), check))

  // The unit tier digests what is short; the long ones take seven snapshots each.
  const digested = isUnitTier ? ["claude-code-tools", "gemini-parser-fix"] : fixtures
  describe.each(digested)("%s: the whole", (name) => {
    it.effect("changes only on purpose: take the new digests with `vitest -u` then", function* () {
      const { evidence, log } = yield* gathered(name)
      const twice = gatheredTwice(log)
      const said = evidence.requests
      const options = {
        kept: [log.at(-1)?.content.parts[0]?.text ?? ""],
        focus: "the src tests and Parser",
        cwd: "/Users/dev/project",
        pins: { original: said[0], latest: said.at(-1), pinned: said.slice(1, 2) }
      }
      const snapshots = [
        ...[700, 2_000, 6_000, ample].map((budget) => composed(evidence, budget)),
        composed(twice, 3_000),
        ...[1_500, 5_000].map((budget) => Work.runSync(composeSnapshot(twice, { ...options, budget })))
      ]
      const rows = [evidence, twice, ...snapshots.map(skeleton)].map((whole) =>
        Object.entries(whole).map(([key, value]) => `${key} ${digest(value)}`)
      )
      const file = `../../golden/whole/${name}.txt`
      const text = rows.map((row) => `${row.join(" ")}\n`).join("")
      yield* Effect.promise(() => expect(text).toMatchFileSnapshot(file))
    })
  })

  describe.each(fixtures)("%s: evidence", (name) => {
    holds("the original request", name, ({ evidence, golden }) => {
      assert.strictEqual(evidence.requests[0]?.text, golden.originalRequest)
    })
    holds("the latest request, and only words of the user", name, ({ evidence, golden }) => {
      assert.deepStrictEqual(
        [...evidence.requests, ...evidence.constraints]
          .map(({ text }) => text)
          .filter((text) => !golden.said.some((said) => said.includes(text))),
        []
      )
      assert.strictEqual(evidence.requests.at(-1)?.text, golden.latestRequest)
    })
    holds("files the tools, `>`, `rm` and `mv` touched: last state and counts", name, ({ evidence, golden }) => {
      const plain = filesWhere(golden, (fact) => !isSubtle(fact))
      assert.deepStrictEqual(
        filesIn(evidence, (path) => {
          const fact = golden.files[path]
          return fact === undefined || !isSubtle(fact)
        }),
        plain
      )
    })
    holds(
      "files that `cp`, `sed -i`, `tee` or a `replace` of nothing created or changed",
      name,
      ({ evidence, golden }) => {
        const wanted = filesWhere(golden, isSubtle)
        assert.deepStrictEqual(
          filesIn(evidence, (path) => path in wanted),
          wanted
        )
      }
    )
    holds("shell commands with their last exit code", name, ({ evidence, golden }) => {
      const found = new Map([...evidence.commands].map(([command, run]) => [command, run.exit ?? null]))
      const wanted = new Map(golden.commands.map(({ command, exit }) => [command, exit]))
      const wrong = [...new Set([...found.keys(), ...wanted.keys()])].filter(
        (command) => JSON.stringify(found.get(command)) !== JSON.stringify(wanted.get(command))
      )
      assert.deepStrictEqual(
        wrong.map((command) => ({ command, found: found.get(command), wanted: wanted.get(command) })),
        []
      )
    })
    holds("every unresolved failure, in lines quoted from the response", name, ({ evidence, golden }) => {
      const found = [...evidence.failures.values()].map(({ text }) => text.split("\n"))
      for (const failure of lastingFailures(golden)) {
        assert.isTrue(
          found.some((lines) => lines.length > 0 && lines.every((line) => isLineOf(failure.lines, line))),
          `${failure.tool} ${failure.target ?? ""}: ${failure.lines[0]}`
        )
      }
    })
    holds("no failure that was resolved later", name, ({ evidence, golden }) => {
      const resolved = [...evidence.failures].filter(
        ([, { isQuoted, text }]) =>
          isQuoted && !golden.failures.some(({ lines }) => text.split("\n").every((line) => isLineOf(lines, line)))
      )
      assert.deepStrictEqual(
        resolved.map(([what, { text }]) => `${what}: ${text}`),
        []
      )
    })
    holds("the last todo list", name, ({ evidence, golden }) => {
      assert.deepStrictEqual(evidence.todos?.todos ?? null, golden.todos)
    })
    holds("the last actions, including failed ones", name, ({ evidence, golden }) => {
      assert.deepStrictEqual(lastCalls(evidence), golden.recent.slice(-1))
    })
  })

  describe.each(fixtures)("%s: a snapshot without a size limit", (name) => {
    holds("overall_goal: the original and the latest request, verbatim", name, ({ evidence, golden }) => {
      const words = userWordsIn(sectionsOf(composed(evidence, ample).text).overall_goal).map(({ text }) => text)
      assert.include(words, golden.originalRequest)
      assert.include(words, golden.latestRequest)
    })
    holds("every message of the user, word for word, and so every constraint", name, ({ evidence }) => {
      const words = userWordsIn(sectionsOf(composed(evidence, ample).text).overall_goal).map(({ text }) => text)
      assert.deepStrictEqual(
        words,
        evidence.requests.map(({ text }) => text)
      )
      for (const { text } of evidence.constraints) {
        assert.isTrue(
          words.some((shown) => shown.includes(text)),
          text
        )
      }
    })
    holds("artifact_trail and file_system_state: every file in its section", name, ({ evidence, golden }) => {
      const sections = sectionsOf(composed(evidence, ample).text)
      const shown = new Map(filesShown(sections))
      for (const [path, fact] of Object.entries(golden.files)) {
        if (!isSubtle(fact)) assert.strictEqual(shown.get(path), fact.state, path)
      }
    })
    holds(
      "recent_actions: every command that left something, and the exit code of each failure that has not ended",
      name,
      ({ evidence, golden }) => {
        const section = sectionsOf(composed(evidence, ample).text).recent_actions
        // The last run of a command counts, whatever was shown of its output; a commit is told by its subject.
        const runs = new Map(golden.commands.map((run) => [commandShown(run.command), run]))
        for (const [same, { command, exit }] of runs) {
          // Checks have lines of their own, and changed files theirs; what hides its result, or failed and succeeded later, is no state.
          const isOpen = evidence.failures.has(command)
          if (isLook(command)) continue
          if (!isOpen && (exit !== 0 || checksOf(command).length > 0 || !leavesMore(command))) continue
          if (evidence.commands.get(command)?.ok === undefined) continue
          const commit = evidence.commits.find(({ subject }) => command.includes(subject))
          const shown = commit === undefined ? `\n    ${same}` : `\n- commit ${commit.hash}: `
          assert.include(section, shown)
          // A commit that failed first is told by the one that succeeded.
          if (!isOpen || commit !== undefined) continue
          const line = section
            .split("\n")
            .find((each) => `\n${each}`.startsWith(shown) && / → (?:exit|failed|no clear result)/.test(each))
          assert.isDefined(line, command)
        }
      }
    )
    holds("task_state: the last action", name, ({ evidence, golden }) => {
      const last = golden.recent.at(-1)
      const section = sectionsOf(composed(evidence, ample).text).task_state
      const line = /^- last action \(e\d+\): (.+)$/m.exec(section)?.[1] ?? ""
      // A command that removed a file is told by what it did.
      const target = line.startsWith("deleted ") ? last?.target?.split(" ").at(-1) : last?.target
      assert.include(line, commandShown(target ?? "").slice(0, 100))
    })
    holds("task_state: the todo list, and every unresolved failure with its lines", name, ({ evidence, golden }) => {
      const section = sectionsOf(composed(evidence, ample).text).task_state
      for (const { status, text } of golden.todos ?? []) {
        assert.include(section, `- [${status}] ${text.replaceAll("<", "&lt;")}`)
      }
      const shown = [...section.matchAll(/^- unresolved failure of [\s\S]+?\):\n((?: {4}.*(?:\n|$))+)/gm)].map(
        ([, lines = ""]) =>
          lines
            .trimEnd()
            .split("\n")
            .map((line) => line.trim())
      )
      for (const failure of lastingFailures(golden)) {
        assert.isTrue(
          shown.some((lines) => lines.every((line) => isLineOf(failure.lines, line))),
          `${failure.tool} ${failure.target ?? ""}: ${failure.lines[0]}`
        )
      }
    })
    holds("key_knowledge: an index of names that were used or shown, each once", name, ({ evidence }) => {
      const names = indexedNames(composed(evidence, ample).snapshot)
      assert.isAbove(names.length, 0)
      // A name without the variable before it: `point.toolUse` as `toolUse`.
      // A path without what says nothing: `./lib/` as `lib`.
      const known = new Set(
        [...evidence.anchors.keys()].flatMap((word) => [
          word,
          word.split(".").at(-1) ?? word,
          word.replace(/^\.\//, "").replace(/\/+$/, "")
        ])
      )
      assert.deepStrictEqual(
        names.filter((word) => !known.has(word)),
        []
      )
      assert.strictEqual(new Set(names).size, names.length)
    })
    holds("does not contradict the golden facts", name, ({ evidence, golden }) => {
      assert.deepStrictEqual(contradictions(composed(evidence, ample).text, golden), [])
    })
  })

  describe.each(fixtures)("%s: compressed twice", (name) => {
    holds("the original request remains first and the latest last", name, ({ golden, log }) => {
      const words = userWordsIn(sectionsOf(composed(gatheredTwice(log), ample).text).overall_goal).map(
        ({ text }) => text
      )
      assert.strictEqual(words[0], golden.originalRequest)
      assert.strictEqual(words.at(-1), golden.latestRequest)
    })
    holds("every file is listed once in its last state", name, ({ golden, log }) => {
      const sections = sectionsOf(composed(gatheredTwice(log), ample).text)
      const shown = filesShown(sections)
      assert.deepStrictEqual(
        shown.map(([path, state]) => `${path}: ${state}`).toSorted(),
        Object.entries(golden.files)
          .filter(([path, fact]) => !isSubtle(fact) || shown.some(([one]) => one === path))
          .map(([path, { state }]) => `${path}: ${state}`)
          .toSorted()
      )
    })
    holds("unresolved failures of the first half remain", name, ({ evidence, golden, log }) => {
      const once = sectionsOf(composed(evidence, ample).text).task_state
      const twice = sectionsOf(composed(gatheredTwice(log), ample).text).task_state
      const shownIn = (section: string, line: string) => section.includes(`\n    ${line.slice(0, 200)}`)
      for (const { lines, target, tool } of golden.failures) {
        if (!lines.some((line) => shownIn(once, line))) continue
        assert.isTrue(
          lines.some((line) => shownIn(twice, line)),
          `${tool} ${target ?? ""}`
        )
      }
    })
    holds("does not contradict the golden facts", name, ({ evidence, golden, log }) => {
      const text = composed(gatheredTwice(log), ample).text
      const once = contradictions(composed(evidence, ample).text, golden)
      assert.deepStrictEqual(
        contradictions(text, golden).filter((wrong) => !once.includes(wrong)),
        []
      )
    })
  })

  describe.each(fixtures)("%s: small snapshots", (name) => {
    it.effect.each([600, 2_000, 4_000])(
      "%i tokens: stays within the budget, and reads back as it was written",
      function* (budget) {
        const { evidence } = yield* gathered(name)
        const { snapshot, text } = composed(evidence, budget)
        assert.isAtMost(estimateText(text), budget)
        const parsed = parseSnapshot(text)
        if (!isSnapshot(parsed)) throw new Error(parsed)
        for (const section of sectionNames) {
          assert.deepStrictEqual(
            parsed[section].map((item) => item.text),
            snapshot[section].map((item) => item.text)
          )
        }
      }
    )
    it.effect.each([600, 2_000, 4_000])("%i tokens: contains only golden facts", function* (budget) {
      const { evidence, golden } = yield* gathered(name)
      assert.deepStrictEqual(contradictions(composed(evidence, budget).text, golden), [])
    })
    holds(
      "2,000 tokens: contains the beginning of both requests, and the file that was changed most",
      name,
      ({ evidence, golden }) => {
        const sections = sectionsOf(composed(evidence, 2_000).text)
        const words = userWordsIn(sections.overall_goal).map(({ text }) => text)
        for (const request of [golden.originalRequest, golden.latestRequest]) {
          assert.isTrue(
            words.some((shown) => shown.length > 0 && request.startsWith(shown)),
            request
          )
        }
        const [changed] = [...evidence.files].toSorted(([, a], [, b]) => b.changes - a.changes)
        // With its state, or in the list of those that were changed, too.
        if (changed !== undefined && changed[1].changes > 0) {
          assert.match(sections.artifact_trail, new RegExp(`^(?:- |    )${escape(changed[0])}(?: |$)`, "m"))
        }
      }
    )
  })
})

/** The smallest conversations that show one rule each. */
describe("details", () => {
  /** Calls, each with its answer; undefined: none came. */
  const made = (from: number, ...calls: ReadonlyArray<readonly [tool: string, args: unknown, answer?: object]>) =>
    calls.flatMap(([tool, args, answer], index) => [
      entryOf(from + index * 2, model(call(tool, args, `${from + index}`))),
      ...(answer === undefined ? [] : [entryOf(from + index * 2 + 1, user(response(tool, answer, `${from + index}`)))])
    ])
  const of = (...log: ReadonlyArray<Entry>) => Work.runSync(gatherEvidence(log))
  const states = (evidence: Evidence) => [...evidence.files].map(([path, { state }]) => `${path}: ${state}`)
  const sh = (command: string) => ["Bash", { command }] as const
  const done = { output: "" }
  const created = { output: "File created successfully at: it" }
  /** What is known when these were compressed into a snapshot and those came after it. */
  const after = (before: ReadonlyArray<Entry>, ...later: ReadonlyArray<Entry>): Evidence =>
    Work.runSync(
      gatherEvidence([entryOf(90, user(text(composed(of(...before), ample).text)), { author: "summary" }), ...later], {
        earlier: before
      })
    )
  const shown = (evidence: Evidence) => sectionsOf(composed(evidence, ample).text)

  it("a command that is running again has not resolved its failure", () => {
    const evidence = of(...made(1, [...sh("make"), { error: "Exit code 2\nno rule" }], sh("make")))
    assert.deepStrictEqual([...evidence.failures.keys()], ["make"])
  })

  it("a failure is identified by the file, whatever argument comes first", () => {
    const edit = (instruction: string) => ["replace", { instruction, file_path: "a.ts", old_string: "x" }] as const
    const evidence = of(
      ...made(
        1,
        [...edit("once"), { error: "0 occurrences found" }],
        [...edit("twice"), { output: "Successfully modified" }]
      )
    )
    assert.deepStrictEqual([...evidence.failures.keys()], [])
  })

  it("a successful search resolves its failure", () => {
    const grep = ["Grep", { pattern: "x" }] as const
    assert.strictEqual(of(...made(1, [...grep, { error: "timed out" }], [...grep, done])).failures.size, 0)
  })

  it("a failure that only the output tells is open, and is not quoted; a look that fails is none", () => {
    const evidence = of(
      ...made(
        1,
        [...sh("npm test | tail -3"), { output: "1 failed" }],
        [...sh("ls missing"), { error: "Exit code 1\nls: missing: No such file" }]
      )
    )
    assert.deepStrictEqual(
      [...evidence.failures].map(([subject, { isQuoted }]) => [subject, isQuoted]),
      [["npm test | tail -3", false]]
    )
  })

  it("words that only announce a call make room for what the agent says next", () => {
    const said = [
      "The parser drops the last token of a line, because the loop ends early.",
      "All of them pass now. Let me run the linter once more.",
      "Let me read the file:",
      "The linter has nothing to say about the parser and its tests."
    ]
    const { lastWords } = of(...said.map((words, at) => entryOf(at + 1, model(text(words)))))
    assert.deepStrictEqual(
      lastWords.map((words) => words.text),
      [said[0], said[3]]
    )
  })

  it("labels of a shell's response are not error lines", () => {
    const answer = { output: "Command: x\nOutput: TypeError: no\nError: (none)\nExit Code: 1\nSignal: (none)" }
    const evidence = of(...made(1, ["run_shell_command", { command: "x" }, answer]))
    assert.strictEqual(evidence.failures.get("x")?.text, "Output: TypeError: no")
  })

  it("removing a folder removes its content", () => {
    const evidence = of(...made(1, ["Write", { file_path: "old/a.ts" }, created], [...sh("rm -r old"), done]))
    assert.notInclude(states(evidence), "old/a.ts: created")
  })

  it.each([
    ["that has a file again", "old", "rm -r old", "old/b.ts", { "old/a.ts": "deleted", "old/b.ts": "created" }],
    [
      "that a build makes anew",
      "dist",
      "rm -rf dist && npm run build",
      "b.ts",
      { "dist/a.ts": "deleted", "b.ts": "created" }
    ]
  ])("a folder %s is not told as deleted", (_, folder, command, then, states) => {
    const evidence = of(
      ...made(1, ["Write", { file_path: `${folder}/a.ts` }, created], [...sh(command), done]),
      ...made(5, ["Write", { file_path: then }, created])
    )
    const told: Record<string, string> = Object.fromEntries(
      [...evidence.files].map(([path, { state }]) => [path, state])
    )
    assert.deepStrictEqual(told, states)
  })

  it("a written file of such a name is told as deleted", () => {
    const evidence = of(
      ...made(1, ["Write", { file_path: "scripts/build" }, created], [...sh("rm scripts/build"), done])
    )
    assert.include(states(evidence), "scripts/build: deleted")
  })

  it("file_path and a path in a shell's folder identify the same file", () => {
    const evidence = of(...made(1, ["Write", { file_path: "pkg/a.ts" }, created], [...sh("cd pkg && rm a.ts"), done]))
    assert.deepStrictEqual(states(evidence), ["pkg/a.ts: deleted"])
  })

  it("text that a program sends in the user's role is not the user's", () => {
    for (const injected of [
      "<task-notification>\n<task-id>b1</task-id>\n</task-notification>\nRead the output file",
      "<system-reminder>never do this</system-reminder>",
      "<local-command-stdout>ok</local-command-stdout>",
      "<local-command-stderr>must not</local-command-stderr>",
      "<bash-input>rm a</bash-input>",
      "<bash-stdout>always</bash-stdout><bash-stderr></bash-stderr>",
      "<user-prompt-submit-hook>never push</user-prompt-submit-hook>",
      "[Request interrupted by user for tool use]"
    ]) {
      const evidence = of(entryOf(1, user(text(injected))))
      assert.deepStrictEqual([evidence.requests, evidence.constraints], [[], []], injected)
    }
  })

  it("a file created before the last compression and edited after it stays listed as created", () => {
    const evidence = after(
      made(1, ["Write", { file_path: "src/a.ts" }, created]),
      ...made(100, ["Edit", { file_path: "src/a.ts" }, done])
    )
    assert.include(shown(evidence).artifact_trail, "    src/a.ts (created)")
  })

  it("a file read before the last compression and changed after it is listed once", () => {
    const evidence = after(
      made(1, ["Read", { file_path: "src/a.ts" }, done]),
      ...made(100, ["Edit", { file_path: "src/a.ts" }, done])
    )
    assert.include(shown(evidence).artifact_trail, "- changed:\n    src/a.ts")
    assert.notInclude(shown(evidence).file_system_state, "src/a.ts")
  })

  it("a file changed before the last compression and only read after it stays listed as changed", () => {
    const evidence = after(
      made(1, ["Edit", { file_path: "src/a.ts" }, done]),
      ...made(100, ["Read", { file_path: "src/a.ts" }, done])
    )
    assert.include(shown(evidence).artifact_trail, "- changed:\n    src/a.ts")
    assert.notInclude(shown(evidence).file_system_state, "src/a.ts")
  })

  it("README.md keeps its capitals and is listed once", () => {
    const evidence = after(
      made(1, ["Edit", { file_path: "README.md" }, done]),
      ...made(100, ["Edit", { file_path: "README.md" }, done])
    )
    assert.strictEqual(shown(evidence).artifact_trail.split("    README.md").length, 2)
  })

  it("a failure from the last snapshot disappears after the command succeeds", () => {
    const evidence = after(
      made(1, [...sh("make"), { error: "Exit code 2\nno rule" }]),
      ...made(100, [...sh("make"), done])
    )
    assert.notInclude(shown(evidence).task_state, "unresolved failure of make")
  })

  it("a failure from the last snapshot remains after a todo list is written", () => {
    const evidence = after(
      made(1, [...sh("make"), { error: "Exit code 2\nno rule" }]),
      ...made(100, ["TodoWrite", { todos: [{ content: "go on", status: "pending" }] }, done])
    )
    assert.include(shown(evidence).task_state, "unresolved failure of make")
    assert.include(shown(evidence).task_state, "[pending] go on")
  })
})
