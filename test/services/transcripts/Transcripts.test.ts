import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Fiber, FileSystem, Layer, Path, PlatformError, Result, Schema, Stdio, Stream } from "effect"
import { execFileSync } from "node:child_process"
import { gunzipSync } from "node:zlib"
import { plan } from "../../../src/domain/compression/strategies/palimpsest/Plan.ts"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { isCall, isResponse, isText, payload } from "../../../src/domain/content/Content.ts"
import { Hash } from "../../../src/domain/content/Handle.ts"
import {
  type Conversation,
  type Draft,
  entries,
  entryId,
  sourceOf,
  undone,
  view,
  viewTokens
} from "../../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../../src/domain/conversation/FailureMemory.ts"
import { sentJson, projectMessages } from "../../../src/domain/conversation/Projection.ts"
import { encodeLine, spillableParts } from "../../../src/domain/session/LogFormat.ts"
import { emptySession, SessionEvent, minSpillBytes, applyEvent } from "../../../src/domain/session/Session.ts"
import { encode } from "../../../src/domain/text/Bytes.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { writeClaude } from "../../../src/domain/transcripts/claude/ClaudeWriter.ts"
import { writeCodex } from "../../../src/domain/transcripts/codex/CodexWriter.ts"
import { writeGemini, writeGeminiDocument } from "../../../src/domain/transcripts/gemini/GeminiWriter.ts"
import { writePi } from "../../../src/domain/transcripts/pi/PiWriter.ts"
import type { FormatName, Step, Transcript, Writer } from "../../../src/domain/transcripts/Transcript.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { HandleIndex, makeEntry } from "../../../src/services/session/EntryBuilder.ts"
import { TempStore } from "../../../src/services/session/TempStore.ts"
import { TokenCounter, TokenCountError } from "../../../src/services/tokens/TokenCounter.ts"
import { importTranscript } from "../../../src/services/transcripts/ImportTranscript.ts"
import type { LoadOptions } from "../../../src/services/transcripts/LoadedTranscript.ts"
import { load } from "../../../src/services/transcripts/Transcripts.ts"
import { sizeOf } from "../../support/runs.ts"
import { assert, describe, layer } from "../../support/vitest.ts"

const services = Layer.mergeAll(NodeServices.layer, MemoryTempStore.layer, TokenCounter.layerEstimate)

const write = Effect.fnUntraced(function* (name: string, content: string | Uint8Array) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(yield* fs.makeTempDirectoryScoped(), name)
  yield* fs.writeFile(file, typeof content === "string" ? new TextEncoder().encode(content) : content)
  return file
})

const loadText = (content: string | Uint8Array, options?: LoadOptions) =>
  Effect.flatMap(write("file", content), (file) => load(file, options))

const failure = <R = never>(
  content: string | Uint8Array,
  options?: LoadOptions,
  tamper?: (file: string) => Effect.Effect<void, unknown, R>
) =>
  Effect.gen(function* () {
    const file = yield* write("file", content)
    if (tamper !== undefined) yield* Effect.orDie(tamper(file))
    const error = yield* Effect.flip(load(file, options))
    assert.strictEqual(error._tag, "TranscriptError")
    assert.strictEqual(error.path, file)
    assert.notInclude(error.message, "\n")
    assert.isTrue(
      error.message.startsWith(error.line === 0 ? `${file}: ` : `${file}, line ${error.line}: `),
      error.message
    )
    return { kind: error.kind, line: error.line, message: error.message.slice(file.length) }
  })

const fixture = Effect.fnUntraced(function* (name: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const url = new URL(`../../fixtures/sessions/${name}.jsonl.gz`, import.meta.url)
  return gunzipSync(yield* fs.readFile(yield* path.fromFileUrl(url)))
})

const texts = (conversation: Conversation) =>
  view(conversation).flatMap((item) => item.entry.content.parts.map((part) => payload(part).text))

const user = (uuid: string, parentUuid: string | null, content: unknown, rest: object = {}) =>
  JSON.stringify({
    parentUuid,
    isSidechain: false,
    type: "user",
    message: { role: "user", content },
    uuid,
    sessionId: "s",
    ...rest
  })
const pi = JSON.stringify({ type: "session", id: "p", timestamp: "2026-01-01T00:00:00Z", cwd: "/w" })
const piSays = (text: string) =>
  JSON.stringify({ type: "message", timestamp: "2026-01-01T00:00:01Z", message: { role: "user", content: text } })

layer(services)((it) => {
  describe("files of other agents", () => {
    it.effect.each([
      "claude-code-short",
      "claude-code-tools",
      "claude-code-subagent",
      "claude-code-1512-lines",
      "pi-1019-lines"
    ])("%s: every part is recallable, counted and in the log once", function* (name) {
      const bytes = yield* fixture(name)
      const loaded = yield* loadText(bytes)
      const { conversation, started } = loaded.session
      assert.strictEqual(loaded.bytes, bytes.length)
      assert.strictEqual(loaded.format, name.startsWith("pi") ? "pi" : "claude")
      assert.isUndefined(loaded.torn)
      assert.strictEqual(started?.importedFrom?.session, loaded.transcript?.session)
      const blocks = bytes
        .toString("utf8")
        .split("\n")
        .map((line) => JSON.parse(line || "{}"))
        .filter((record) => record.type === "assistant" || record.message?.role === "assistant")
        .flatMap((record) => (Array.isArray(record.message?.content) ? record.message.content : []))
      const calls = blocks.filter((block) => block.type === "toolCall" || block.type === "tool_use")
      const all = entries(conversation)
      const parts = all.flatMap((entry) => [...entry.content.parts])
      assert.strictEqual(parts.filter(isCall).length, calls.length)
      const callIds = new Set(parts.filter(isCall).map((part) => part.functionCall.id))
      assert.isTrue(parts.filter(isResponse).every((part) => callIds.has(part.functionResponse.id)))
      assert.isAbove(parts.filter(isText).length, 0)
      all.forEach((entry, index) => {
        assert.strictEqual(entry.tokens.length, entry.content.parts.length)
        assert.strictEqual(entry.handles.length, entry.content.parts.length)
        if (loaded.transcript?.steps.every((one) => one._tag === "Message") === true) {
          assert.strictEqual(entry.id, entryId(index + 1))
        }
      })
      // A handle names one text.
      const named = new Map<string, string>()
      for (const entry of all) {
        for (const [index, part] of entry.content.parts.entries()) {
          const { text } = payload(part, sourceOf(entry, index))
          const handle = entry.handles[index] ?? ""
          assert.strictEqual(named.get(handle) ?? text, text)
          named.set(handle, text)
        }
      }
    })

    it.effect("a compaction becomes a compression that can be undone", function* () {
      const { session, transcript } = yield* loadText(yield* fixture("claude-code-1512-lines"))
      const steps = transcript?.steps ?? []
      const at = steps.findIndex((one) => one._tag === "Compaction")
      const items = view(session.conversation)
      assert.strictEqual(items[0]?.entry.author, "summary")
      assert.strictEqual(items.length, steps.length - at)
      const before = undone(session.conversation)
      assert.strictEqual(view(before).length, steps.length - 1)
      assert.isAbove(viewTokens(before), viewTokens(session.conversation))
    })

    it.effect("after a compaction the original request is still the first of the whole log", function* () {
      const { session } = yield* loadText(yield* fixture("claude-code-1512-lines"))
      const policy = { ...defaultPolicy, limit: TokenCount.make(32_000) }
      const decision = yield* Work.run(
        plan(session.conversation, policy, { forced: true, memory: freshMemory, rung: 0 })
      )
      if (decision._tag !== "Go") return assert.fail(decision._tag)
      const pin = decision.plan.steps.find((one) => one._tag === "Pin" && one.why === "original request")
      assert.strictEqual(pin?._tag === "Pin" ? pin.entry : undefined, entryId(1))
      assert.notInclude(
        view(session.conversation).map(({ entry }) => entry.id),
        entryId(1)
      )
    })

    it.effect("reading is deterministic, session id included", function* () {
      const bytes = yield* fixture("claude-code-tools")
      const [a, b] = [yield* loadText(bytes), yield* loadText(bytes)]
      assert.deepStrictEqual(a.session, b.session)
      assert.match(a.session.started?.session ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    })

    it.effect("ten thousand lines of 30 MB are imported in seconds, and the import can be interrupted", function* () {
      const lines = Array.from({ length: sizeOf(10_000, 500) }, (_, index) =>
        user(`u${index}`, index === 0 ? null : `u${index - 1}`, `${index} ${"some words of text ".repeat(160)}`)
      )
      const file = yield* write("file", lines.join("\n"))
      const loaded = yield* load(file)
      assert.strictEqual(view(loaded.session.conversation).length, lines.length)
      const fiber = yield* Effect.forkChild(load(file), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
    })
  })

  describe("importing", () => {
    const said = (text: string, rest: Partial<Draft> = {}): Draft => ({
      content: { role: "user", parts: [{ text }] },
      ...rest
    })
    const transcript = (steps: Transcript["steps"]): Transcript => ({
      format: "pi",
      session: "p",
      cwd: "/w",
      model: "m",
      steps,
      skipped: {}
    })
    const message = (text: string, rest?: Partial<Draft>) => ({ _tag: "Message" as const, draft: said(text, rest) })
    const compaction = (text: string, keptFrom?: number) => ({
      _tag: "Compaction" as const,
      insert: [said(text, { author: "summary" as const })],
      keptFrom,
      trigger: "auto" as const,
      tokensBefore: undefined
    })
    const folded = (steps: Transcript["steps"]) =>
      Effect.map(importTranscript(transcript(steps)), (events) => ({
        events,
        ...events.reduce(applyEvent, emptySession)
      }))

    it.effect("the events are valid, in order, and fold to what the agent saw", function* () {
      const { conversation, events, started } = yield* folded([
        message("a", { at: 5 }),
        message("b"),
        compaction("s1"),
        message("c", { at: 9 })
      ])
      for (const event of events) assert.isTrue(Schema.is(SessionEvent)(event))
      assert.deepStrictEqual(
        events.map((event) => event._tag),
        ["Started", "Appended", "Appended", "Compressed", "Appended"]
      )
      assert.deepStrictEqual([started?.model, started?.cwd, started?.at], ["m", "/w", 5])
      assert.deepStrictEqual(started?.importedFrom, { format: "pi", session: "p" })
      assert.deepStrictEqual(texts(conversation), ["s1", "c"])
      assert.deepStrictEqual(
        entries(conversation).map((entry) => entry.id),
        [entryId(1), entryId(2), entryId(4)]
      )
      const [compressed] = events.filter((event) => event._tag === "Compressed")
      assert.deepStrictEqual(
        [compressed?.status, compressed?.strategy, compressed?.patch.drop, compressed?.patch.insert[0]?.id],
        ["COMPRESSED", "imported", { from: entryId(1), to: entryId(2) }, entryId(3)]
      )
    })

    it.effect.each<readonly [string, Transcript["steps"], ReadonlyArray<string>]>([
      [
        "messages from keptFrom on stay",
        [message("a"), message("b"), message("c"), compaction("s", 1), message("d")],
        ["s", "b", "c", "d"]
      ],
      [
        "a later summary replaces an earlier one",
        [message("a"), compaction("s1"), message("b"), compaction("s2")],
        ["s2"]
      ],
      [
        "what was kept once can be kept again",
        [message("a"), message("b"), compaction("s1", 1), message("c"), compaction("s2", 1)],
        ["s2", "b", "c"]
      ],
      [
        "the environment stays in front",
        [message("env", { author: "environment" }), message("a"), compaction("s"), message("b")],
        ["env", "s", "b"]
      ],
      ["nothing came before", [compaction("s"), message("a")], ["s", "a"]]
    ])("%s", function* ([, steps, expected]) {
      const { conversation } = yield* folded(steps)
      assert.deepStrictEqual(texts(conversation), expected)
    })
  })

  describe("entries", () => {
    it.effect(
      "equal bytes get equal handles, other bytes others, and a part with a source has its source's hash",
      function* () {
        const held = new HandleIndex()
        const store = yield* TempStore
        const source = '{"functionCall":{"name":"f","args":{"n":1.0}}}'
        const draft: Draft = {
          content: { role: "model", parts: [{ text: "a" }, { text: "b" }, { text: "a" }, JSON.parse(source)] },
          source: { "3": source }
        }
        const { handles, tokens } = yield* makeEntry(draft, entryId(1), held)
        assert.strictEqual(tokens.length, 4)
        assert.strictEqual(handles[0], handles[2])
        assert.notStrictEqual(handles[0], handles[1])
        const hash = yield* store.hash(encode(source))
        assert.strictEqual(handles[3], `h_${hash.slice(0, 10)}`)
      }
    )

    it.effect("a handle grows on a collision", function* () {
      const held = new HandleIndex()
      const one = Hash.make("a".repeat(52))
      const two = Hash.make(`${"a".repeat(11)}${"b".repeat(41)}`)
      assert.strictEqual(yield* held.assign(one, () => "one"), `h_${"a".repeat(10)}`)
      assert.strictEqual(yield* held.assign(two, () => "two"), `h_${"a".repeat(11)}`)
      assert.strictEqual(yield* held.assign(one, () => "one"), `h_${"a".repeat(10)}`)
      assert.strictEqual(yield* held.assign(two, () => "two"), `h_${"a".repeat(11)}`)
    })
  })

  describe("lines", () => {
    it.effect("CRLF, a byte order mark and empty lines are accepted", function* () {
      const plain = yield* loadText([pi, piSays("a"), piSays("b")].join("\n"))
      const odd = yield* loadText(`\uFEFF${[pi, "", piSays("a"), "  ", piSays("b"), ""].join("\r\n")}`)
      assert.deepStrictEqual(texts(odd.session.conversation), texts(plain.session.conversation))
      assert.strictEqual(odd.transcript?.steps[1]?._tag === "Message" && odd.transcript.steps[1].draft.origin?.line, 5)
    })

    it.effect("CRLF round-trips without a needless source", function* () {
      const call = `{"type":"message","timestamp":"2026-01-01T00:00:01Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"f","arguments":{"a":1}}]}}`
      const { session } = yield* loadText(`${pi}\r\n${call}\r\n`)
      assert.isUndefined(entries(session.conversation)[0]?.source)
    })

    it.effect.each(["utf16le", "utf16be"])("%s, as PowerShell writes files, is read as UTF-8 is", function* (form) {
      const text = '\uFEFF[{"role":"user","parts":[{"text":"Caf\u00e9 \u{1f600}"}]}]\r\n'
      const bytes = Buffer.from(text, "utf16le")
      const loaded = yield* load(yield* write("a.json", form === "utf16le" ? bytes : bytes.swap16()))
      assert.deepStrictEqual(texts(loaded.session.conversation), ["Caf\u00e9 \u{1f600}"])
    })

    it.effect("bytes that are not UTF-8 round-trip", function* () {
      const bytes = Uint8Array.from([...encode(`${pi}\n`), ...encode(piSays("@").replace("@", "a\uDCFF\uDC80b"))])
      const { session } = yield* loadText(bytes)
      const entry = entries(session.conversation)[0]
      const part = entry?.content.parts[0]
      assert.isDefined(part)
      if (entry === undefined || part === undefined) return
      assert.deepStrictEqual([...encode(payload(part, sourceOf(entry, 0)).text)], [97, 0xff, 0x80, 98])
    })

    it.effect.each([1, 7, 64, 1_000_000])("chunks of %s bytes give the same result", function* (size) {
      const bytes = encode(`${[pi, piSays("ä€😀"), piSays("x".repeat(300))].join("\n")}\n`)
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.slice(i * size, (i + 1) * size)
      )
      const loaded = yield* load("-").pipe(Effect.provide(Stdio.layerTest({ stdin: Stream.fromIterable(chunks) })))
      assert.deepStrictEqual(texts(loaded.session.conversation), ["ä€😀", "x".repeat(300)])
      assert.strictEqual(loaded.bytes, bytes.length)
    })

    it.effect("a single incomplete line is not a conversation", function* () {
      const { line, message } = yield* failure('{"parentUuid":null,"type":"us')
      assert.strictEqual(line, 1)
      assert.include(message, "not JSON")
    })

    it.effect.each<readonly [string, string, number, string, string]>([
      ["a broken line", `${pi}\n{"type":\n${piSays("a")}\n`, 2, "not JSON", "broken line"],
      ["a line that ends the file, broken but complete", `${pi}\n${piSays("a")}\n{"x\n`, 3, "not JSON", "broken line"],
      [
        "a record that is wrong",
        `${pi}\n{"type":"message","timestamp":"x"}\n${piSays("a")}\n`,
        2,
        "message: expected",
        "broken line"
      ],
      [
        "a line of another format",
        `${pi}\n${user("1", null, "x")}\n${piSays("a")}\n`,
        2,
        "format claude in a file of the format pi",
        "claude line"
      ]
    ])("%s is an error that names it, and skipped when lenient", function* ([, text, line, says, kind]) {
      const error = yield* failure(text)
      assert.strictEqual(error.line, line)
      assert.include(error.message, says)
      assert.strictEqual(error.kind, "BrokenLine")
      const loaded = yield* loadText(text, { lenient: true })
      assert.deepStrictEqual(loaded.skipped, { [kind]: 1 })
      assert.deepStrictEqual(texts(loaded.session.conversation), ["a"])
    })

    it.effect("a given format overrides detection", function* () {
      const error = yield* failure(`${pi}\n${piSays("a")}\n`, { from: "claude" })
      assert.strictEqual(error.line, 1)
      assert.include(error.message, "format pi in a file of the format claude")
    })
  })

  describe("contents", () => {
    it.effect("a document without its end is an error that lenient reading mends", function* () {
      const text = '[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"te'
      assert.strictEqual((yield* failure(text)).kind, "BrokenLine")
      const loaded = yield* loadText(text, { lenient: true })
      assert.deepStrictEqual(loaded.skipped, { "incomplete end": 1 })
      assert.deepStrictEqual(texts(loaded.session.conversation), ["a"])
    })

    it.effect("a document over several lines round-trips exactly", function* () {
      const part = '{"functionCall":{"name":"f","args":{"2":12345678901234567890,"1":1.0}}}'
      const text = `\uFEFF{\n "contents": [\n  {"role":"user","parts":[{"text":"go"}]},\n  {"role":"model","parts":[${part}]}\n ]\n}\n`
      const loaded = yield* loadText(text)
      assert.strictEqual(loaded.format, "contents")
      assert.include(sentJson(projectMessages(loaded.session.conversation)), part)
    })

    it.effect.each<readonly [string, string, LoadOptions, string]>([
      ["broken JSON", '[{"role":"user"', {}, "not JSON"],
      ["a wrong schema", '[{"role":"user","parts":[{"text":5}]}]', {}, "[0].parts[0].text"],
      ["another document", '{"a":1}', { from: "contents" }, "expected a list of Content"]
    ])("%s is an error", function* ([, text, options, says]) {
      assert.include((yield* failure(text, options)).message, says)
    })
  })

  describe("unreadable input", () => {
    it.effect.each<readonly [string, string | Uint8Array, string]>([
      ["an empty file", "", "is empty; expected"],
      ["nothing but white space", "\n \n", "is empty; expected"],
      ["zeros", new Uint8Array(100), "is binary; expected"],
      ["gzip", Uint8Array.from([0x1f, 0x8b, 8, 0, 0]), "unpack it first: gunzip -k FILE"],
      ["Zstandard", Uint8Array.from([0x28, 0xb5, 0x2f, 0xfd, 0]), "unpack it first: unzstd FILE"],
      ["a ZIP archive", Uint8Array.from([0x50, 0x4b, 3, 4, 0]), "unpack it first: unzip FILE"],
      ["a pointer of Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", "git lfs pull"],
      ["a session with zeros", '{"type":"user","parentUuid":null}\n\0\0', "holds zero bytes, as a crash leaves them"],
      ["prose", "# Title\n", "unknown format; expected"],
      ["other JSON", '{"name":"x"}', "unknown format; expected"]
    ])("%s", function* ([, content, says]) {
      const { line, message } = yield* failure(content)
      assert.strictEqual(line, 0)
      assert.include(message, says)
    })

    it.effect.each<readonly [string, string, string]>([
      ["a file that is not there", "/no/such/file", "no such file"],
      ["no name", "", "no such file"],
      ["a folder", "/", "is a directory"],
      ["a device", "/dev/null", "is a device"]
    ])("%s", function* ([, path, says]) {
      const error = yield* Effect.flip(load(path))
      assert.include(error.message, says)
      assert.strictEqual(error.line, 0)
    })

    it.effect("an invalid name", function* () {
      const error = yield* Effect.flip(load("a\0b"))
      assert.notInclude(error.message, "\0")
    })

    it.effect("a pipe is not opened", function* () {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* fs.makeTempDirectoryScoped()}/pipe`
      yield* Effect.sync(() => execFileSync("mkfifo", [file]))
      const error = yield* Effect.flip(load(file))
      assert.include(error.message, "is a pipe")
    })

    it.effect("an unreadable file", function* () {
      const fs = yield* FileSystem.FileSystem
      const denied = PlatformError.systemError({ _tag: "PermissionDenied", module: "FileSystem", method: "open" })
      const file = yield* write("file", pi)
      const error = yield* Effect.flip(load(file)).pipe(
        Effect.provideService(FileSystem.FileSystem, { ...fs, stream: () => Stream.fail(denied) })
      )
      assert.strictEqual(error.message, `${file}: permission denied`)
    })

    it.effect("uncountable tokens", function* () {
      const cause = new Error("no counter")
      const error = yield* Effect.flip(loadText(`${pi}\n${piSays("a")}\n`)).pipe(
        Effect.provideService(TokenCounter, {
          count: () => Effect.fail(new TokenCountError({ message: "no counter", cause }))
        })
      )
      assert.include(error instanceof Error ? error.message : "", "no counter")
    })

    it.effect("the file is never changed", function* () {
      const fs = yield* FileSystem.FileSystem
      const text = `${pi}\n{"broken\n${piSays("a")}`
      const file = yield* write("file", text)
      yield* Effect.result(load(file))
      yield* load(file, { lenient: true })
      assert.strictEqual(yield* fs.readFileString(file), text)
    })
  })

  describe("every format with faults", () => {
    const said = (role: "user" | "model", words: string): Step => ({
      _tag: "Message",
      draft: { content: { role, parts: [{ text: words }] }, at: 1_770_000_000_000 }
    })
    const talk: Transcript = {
      format: "palimpsest",
      session: "0199a000-0000-7000-8000-000000000001",
      cwd: "/w",
      model: "m",
      steps: ["one", "two", "three", "four"].map((words, index) => said(index % 2 === 0 ? "user" : "model", words)),
      skipped: {}
    }
    const formats: ReadonlyArray<readonly [FormatName, Writer]> = [
      ["claude", writeClaude],
      ["codex", writeCodex],
      ["gemini", writeGemini],
      ["pi", writePi]
    ]
    const linesOf = (writer: Writer) => Work.runSync(writer(talk)).lines
    const spoken = ({ session }: { readonly session: { readonly conversation: Conversation } }) =>
      texts(session.conversation)

    it.effect.each(formats)(
      "%s: is detected by its content, whatever its file extension",
      function* ([format, writer]) {
        for (const name of ["talk.json", "talk.jsonl", "talk.txt", "talk"]) {
          const file = yield* write(name, `${linesOf(writer).join("\n")}\n`)
          const loaded = yield* load(file)
          assert.deepStrictEqual([loaded.format, spoken(loaded)], [format, ["one", "two", "three", "four"]], name)
        }
      }
    )

    it.effect.each(formats)(
      "%s: is read from a list of its records, and from records over several lines",
      function* ([format, writer]) {
        const records: ReadonlyArray<unknown> = linesOf(writer).map((line) => JSON.parse(line))
        const list = JSON.stringify(records, null, 2)
        const lines = records.map((record) => JSON.stringify(record, null, "\t"))
        for (const content of [JSON.stringify(records), list, lines.join("\n"), ` ${lines.join("\r\n\r\n")} `]) {
          const loaded = yield* load(yield* write("talk.json", content))
          assert.deepStrictEqual([loaded.format, spoken(loaded)], [format, ["one", "two", "three", "four"]])
        }
        // An error names the line on which its record begins.
        const last = list.lastIndexOf("\n  {")
        const broken = yield* failure(`${list.slice(0, last)}\n  {"a" 1}${list.slice(list.lastIndexOf("\n]"))}`)
        assert.deepStrictEqual([broken.line, broken.kind], [list.slice(0, last).split("\n").length + 1, "BrokenLine"])
        assert.include((yield* failure(list.slice(0, -20))).message, "not JSON")
      }
    )

    it.effect.each(formats)("%s: read as another format is one clear error", function* ([format, writer]) {
      const content = `${linesOf(writer).join("\n")}\n`
      for (const from of ["palimpsest", "contents", "gemini", "pi", "claude", "codex"] as const) {
        if (from === format) continue
        const { message } = yield* failure(content, { from })
        assert.match(message, /format|expected|not JSON/, from)
      }
    })

    it.effect.each(["talk.json", "talk.jsonl"])(
      "a Gemini CLI document named %s is read as what it is",
      function* (name) {
        const [document = ""] = Work.runSync(writeGeminiDocument(talk)).lines
        const loaded = yield* load(yield* write(name, `${document}\n`))
        assert.deepStrictEqual([loaded.format, spoken(loaded)], ["gemini", ["one", "two", "three", "four"]])
        const pretty = JSON.stringify(JSON.parse(document), null, 2)
        assert.deepStrictEqual(spoken(yield* load(yield* write(name, pretty))), ["one", "two", "three", "four"])
        assert.include((yield* failure(pretty.slice(0, -20))).message, "not JSON")
      }
    )
  })

  describe("our own logs", () => {
    /** A log of some texts, its large parts in a folder beside it. */
    const log = Effect.fnUntraced(function* (drafts: ReadonlyArray<Draft>) {
      const store = yield* TempStore
      const events = yield* importTranscript({
        format: "pi",
        session: "p",
        cwd: undefined,
        model: undefined,
        steps: drafts.map((draft) => ({ _tag: "Message" as const, draft })),
        skipped: {}
      })
      const blobs = new Map<string, Uint8Array>()
      const lines: Array<string> = []
      for (const event of events) {
        const notes = new Map<string, { readonly hash: Hash; readonly size: number; readonly form: "text" | "json" }>()
        for (const { form, key, text } of spillableParts(event, minSpillBytes)) {
          const bytes = encode(text)
          const hash = yield* store.hash(bytes)
          blobs.set(hash, bytes)
          notes.set(key, { hash, size: bytes.length, form })
        }
        lines.push(encodeLine(event, notes))
      }
      return { blobs, lines, session: events.reduce(applyEvent, emptySession) }
    })
    const says = (text: string): Draft => ({ content: { role: "user", parts: [{ text }] } })
    const large = "large ".repeat(4_000)
    const bigCall = `{"functionCall":{"name":"f","args":{"2":"${large}","1":1.0}}}`
    const drafts: ReadonlyArray<Draft> = [
      says("small"),
      says(large),
      { content: { role: "model", parts: [JSON.parse(bigCall)] }, source: { "0": bigCall } }
    ]
    const put = Effect.fnUntraced(function* (folder: string, blobs: ReadonlyMap<string, Uint8Array>) {
      const fs = yield* FileSystem.FileSystem
      yield* fs.makeDirectory(folder, { recursive: true })
      for (const [hash, bytes] of blobs) yield* fs.writeFile(`${folder}/${hash}`, bytes)
    })

    it.effect.each(["s.jsonl.blobs", "s.blobs"])(
      "read back with its blobs in %s, the log is the session that was written",
      function* (folder) {
        const path = yield* Path.Path
        const { blobs, lines, session } = yield* log(drafts)
        assert.strictEqual(blobs.size, 2)
        const file = yield* write("s.jsonl", `${lines.join("\n")}\n`)
        yield* put(path.join(path.dirname(file), folder), blobs)
        const loaded = yield* load(file)
        assert.strictEqual(loaded.format, "palimpsest")
        assert.isUndefined(loaded.transcript)
        assert.deepStrictEqual(loaded.session.started, session.started)
        assert.deepStrictEqual(entries(loaded.session.conversation), entries(session.conversation))
      }
    )

    it.effect("a missing or damaged blob is an error that names it", function* () {
      const { blobs, lines } = yield* log([says(large)])
      const [hash] = blobs.keys()
      const text = `${lines.join("\n")}\n`
      const missing = yield* failure(text, { lenient: true })
      assert.strictEqual(missing.line, 2)
      assert.include(missing.message, `the stored part ${hash} is missing`)
      // Shorter, and as long.
      for (const other of ["other", `other ${large.slice(6)}`]) {
        const damaged = yield* failure(text, {}, (file) => put(`${file}.blobs`, new Map([[hash ?? "", encode(other)]])))
        assert.include(damaged.message, "is damaged")
      }
    })

    it.effect("invalid lines are errors, and skipped when lenient", function* () {
      const { lines } = yield* log([says("a"), says("b"), says("c")])
      const [started = "", a = "", b = "", c = ""] = lines
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, number, string]> = [
        [[a, started], 1, "expected the event Started first, got Appended"],
        [[started, a, started], 3, "a second event Started"],
        [[started, a, c], 3, "entry e3 is out of order; expected e2"],
        [[started, a, a], 3, "entry e1 is out of order; expected e2"],
        [[started, a, "{}", b], 3, "expected an event"],
        [[started, a, '{"_tag":"Zapped"}'], 3, "unknown event: Zapped"],
        [[started, a.replace('"handles":["', '"handles":["x')], 2, ""],
        [
          [
            started,
            a,
            '{"_tag":"Compressed","at":0,"status":"COMPRESSED","strategy":"x","trigger":"auto","before":1,"after":0,"patch":{"drop":{"from":"e1","to":"e7"},"insert":[],"shorten":[]}}'
          ],
          3,
          "refers to e7"
        ]
      ]
      for (const [bad, line, says] of cases) {
        const error = yield* failure(`${bad.join("\n")}\n`)
        assert.strictEqual(error.line, line)
        assert.include(error.message, says)
      }
      const loaded = yield* loadText(`${[started, "{}", a, "?", c].join("\n")}\n`, { lenient: true })
      assert.deepStrictEqual(texts(loaded.session.conversation), ["a", "c"])
      assert.deepStrictEqual(loaded.skipped, { "broken line": 2 })
    })

    it.effect("an optional event is skipped; a newer version is an error even when lenient", function* () {
      const { lines } = yield* log([says("a")])
      const [started = "", a = ""] = lines
      const loaded = yield* loadText(`${started}\n{"_tag":"Later","ignorable":true}\n${a}\n`)
      assert.deepStrictEqual(loaded.skipped, { "ignorable event": 1 })
      const error = yield* failure(`${started.replace('"version":1', '"version":2')}\n`, { lenient: true })
      assert.include(error.message, "newer version")
    })

    it.effect("a log without a Started event is an error", function* () {
      const error = yield* Effect.result(loadText('{"_tag":"Undone","at":1}\n', { lenient: true }))
      assert.isTrue(Result.isFailure(error))
    })
  })
})
