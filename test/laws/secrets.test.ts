import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, Path, Schema } from "effect"
import { callsOf, Outcome } from "../../src/domain/compression/Compression.ts"
import { defaultPolicy, type Policy } from "../../src/domain/compression/strategies/Policy.ts"
import { strategyDefaults } from "../../src/domain/compression/strategies/Strategies.ts"
import { call, type Content, model, plainText, response, text, user } from "../../src/domain/content/Content.ts"
import { append, compressed, entries, entryId } from "../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../src/domain/conversation/FailureMemory.ts"
import { redactedContents } from "../../src/domain/conversation/RedactedEntries.ts"
import { emptySession } from "../../src/domain/session/Session.ts"
import { runSync } from "../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../src/layers/testing/ScriptedModel.ts"
import { Chat } from "../../src/services/chat/Chat.ts"
import { excerptOf } from "../../src/services/chat/Titles.ts"
import { Compression } from "../../src/services/compression/Compression.ts"
import { requestFor } from "../../src/services/conversation/KnownConversation.ts"
import type { ModelRequest } from "../../src/services/model/Model.ts"
import { HandleIndex, makeEntry } from "../../src/services/session/EntryBuilder.ts"
import { recall } from "../../src/services/tools/builtin/Recall.ts"
import { load } from "../../src/services/transcripts/Transcripts.ts"
import { callTool } from "../support/callTool.ts"
import { runsOf } from "../support/runs.ts"
import { givenAway, type Planted, plantedSecrets } from "../support/secrets.ts"
import { said, transcriptOf, writtenText } from "../support/transcripts.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * Three hundred secrets of thirty kinds, planted in outputs and arguments of tools, in files, in the user's messages and in
 * recordings of other programs: none of them appears in a snapshot, whoever writes it, and none is sent to a summarizing model.
 * The conversation itself stays unchanged behind its handles.
 */

const planted = plantedSecrets()

/** Lines that no snapshot keeps, so that every snapshot is shorter than the text it replaces. */
const filler = Array.from({ length: 30 }, (_, line) => `step ${line} of the build went by without a word`).join("\n")

/** A turn that contains a secret, in one of five places. */
const turnOf = ({ text: words }: Planted, at: number): ReadonlyArray<Content> => {
  const id = `c${at}`
  const asked = user(
    text(at % 5 === 4 ? `Go on with part ${at}. You must never log it: ${words}` : `Go on with part ${at}.`)
  )
  switch (at % 5) {
    case 0:
      return [
        asked,
        model(call("run_shell_command", { command: `cat config/${at}.conf` }, id)),
        user(response("run_shell_command", { output: `Output: loading ${at}\n${filler}\n${words}\nExit Code: 1` }, id)),
        model(text(`Part ${at} is read.`))
      ]
    case 1:
      return [
        asked,
        model(call("run_shell_command", { command: `deploy --part ${at}\n${words}` }, id)),
        user(response("run_shell_command", { error: `deploy failed: invalid argument\n${words}` }, id)),
        model(text(`I decided to go on because of ${words}`))
      ]
    case 2:
      return [
        asked,
        model(call("write_file", { file_path: `/work/config/${at}.env`, content: `# part ${at}\n${words}\n` }, id)),
        user(response("write_file", { output: `Wrote /work/config/${at}.env` }, id)),
        model(text(`Written.`))
      ]
    case 3:
      return [
        asked,
        model(call("read_file", { file_path: `/work/config/${at}.env` }, id)),
        user(response("read_file", { output: `${filler}\n1→# part ${at}\n2→${words.replaceAll("\n", "\n2→")}\n` }, id)),
        model(text(`Read.`))
      ]
    default:
      return [asked, model(text(`I keep it to myself.`))]
  }
}

const conversation: ReadonlyArray<Content> = planted.flatMap(turnOf)

/** A model that repeats every word of its input. */
const chatterbox = ({ contents }: ModelRequest): string => {
  const said = contents
    .map((content) => content.parts.map((part) => part.text ?? JSON.stringify(part)).join("\n"))
    .join("\n")
    .replaceAll("<", "(")
    .replaceAll(filler, "")
    .replaceAll(JSON.stringify(filler).slice(1, -1), "")
  return `<state_snapshot><overall_goal>- go on</overall_goal><key_knowledge>\n${said
    .split("\n")
    .map((line) => `- ${line}`)
    .join("\n")}\n</key_knowledge></state_snapshot>`
}

const policyOf = (policy: Partial<Policy>): Policy => ({
  ...defaultPolicy,
  ...strategyDefaults(policy.strategy ?? "palimpsest"),
  ladder: false,
  minGain: 0,
  preserve: 0.05,
  limit: TokenCount.make(1_000_000),
  snapshotBudget: TokenCount.make(200_000),
  ...policy
})

const encode = Schema.encodeSync(Outcome)

/** What a compression shows: the snapshot, its report, and the model's answers. Shortened outputs belong to the conversation. */
const shownBy = (outcome: Outcome): string => {
  const { patch: _, ...rest }: Record<string, unknown> = { ...encode(outcome) }
  const inserted = outcome._tag === "Compressed" ? outcome.patch.insert.map(({ content }) => plainText(content)) : []
  return [JSON.stringify(rest), ...inserted].join("\n").replaceAll("\\n", "\n").replaceAll('\\"', '"')
}

const leaks = (shown: string): ReadonlyArray<string> =>
  givenAway(shown, planted).map(({ kind, text: words }) => `${kind}: ${words}`)

const compressing = (policy: Partial<Policy>) =>
  Effect.gen(function* () {
    const request = yield* requestFor(
      conversation.map((content) => ({ content })),
      policyOf(policy)
    )
    const { outcome } = yield* (yield* Compression).compress({ ...request, forced: true })
    return outcome
  })

const ways: ReadonlyArray<Partial<Policy>> = [
  { strategy: "palimpsest", summarizer: "extractive" },
  { strategy: "palimpsest", summarizer: "model" },
  { strategy: "palimpsest", summarizer: "model", redactSecrets: false },
  { strategy: "palimpsest", summarizer: "model", redactSecrets: false, digestBudget: TokenCount.make(1_000_000) },
  { strategy: "palimpsest", summarizer: "extractive", focus: planted.map(({ text: words }) => words).join("\n") },
  { strategy: "gemini", summarizer: "extractive" },
  { strategy: "gemini", summarizer: "model" },
  { strategy: "gemini", summarizer: "model", redactSecrets: false }
]

describe("secrets", () => {
  it("have three hundred samples of thirty kinds", () => {
    assert.strictEqual(planted.length, 300)
    assert.strictEqual(new Set(planted.map(({ kind }) => kind)).size, 30)
    // A check of the test itself: without any rule all of them would appear.
    const said = conversation.flatMap(({ parts }) => parts.map((part) => part.text ?? JSON.stringify(part))).join("\n")
    assert.strictEqual(leaks(said.replaceAll("\\n", "\n").replaceAll('\\"', '"').replaceAll("\\\\", "\\")).length, 300)
  })

  for (const way of ways) {
    const name = `${way.strategy}, ${way.summarizer}${way.redactSecrets === false ? ", requests as they are" : ""}${way.digestBudget === undefined ? "" : ", whole"}${way.focus === undefined ? "" : ", with a focus"}`
    it.effect(
      `are absent from a compressed view: ${name}`,
      () => {
        const requests: Array<string> = []
        const scripted = Scripted.layer((request) => {
          requests.push(JSON.stringify(request).replaceAll("\\n", "\n").replaceAll('\\"', '"'))
          return chatterbox(request)
        })
        return Effect.gen(function* () {
          const outcome = yield* compressing(way)
          assert.strictEqual(outcome._tag, "Compressed")
          assert.deepStrictEqual(leaks(shownBy(outcome)), [])
          assert.strictEqual(callsOf(outcome).length > 0, way.summarizer === "model")
          // A digest is always without secrets.
          const isAsItIs = way.redactSecrets === false && (way.strategy === "gemini" || way.digestBudget !== undefined)
          if (isAsItIs) assert.isAbove(leaks(requests.join("\n")).length, 200)
          else assert.deepStrictEqual(leaks(requests.join("\n")), [])
          const kept = outcome._tag === "Compressed" ? Object.values(outcome.secrets ?? {}) : []
          assert.isAtLeast(
            kept.reduce((sum, count) => sum + count, 0),
            250
          )
        }).pipe(Effect.provide(Offline.layerWithModel(scripted)))
      },
      60_000
    )
  }

  for (const form of ["claude", "codex", "gemini", "pi"] as const) {
    it.effect(
      `are absent from the snapshot of an imported transcript: ${form}`,
      () =>
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const path = yield* Path.Path
          const file = path.join(yield* fs.makeTempDirectoryScoped(), "session.jsonl")
          const steps = conversation.map((content, at) => said(content, { at: at * 1_000 }))
          yield* fs.writeFileString(file, writtenText(form, transcriptOf(steps)).text)
          const { session } = yield* load(file)
          assert.isAbove(entries(session.conversation).length, 500)
          const { outcome } = yield* (yield* Compression).compress({
            conversation: session.conversation,
            policy: policyOf({}),
            forced: true,
            memory: freshMemory,
            held: new HandleIndex()
          })
          assert.strictEqual(outcome._tag, "Compressed")
          assert.deepStrictEqual(leaks(shownBy(outcome)), [])
          assert.deepStrictEqual(leaks(JSON.stringify(excerptOf(entries(session.conversation)) ?? "")), [])
        }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(Offline.layer, NodeServices.layer))),
      60_000
    )
  }

  it.effect("can be recalled by the user, and not by the model", Offline.layer, function* () {
    const secret = planted[20]
    assert.isDefined(secret)
    const output = `before\n${secret?.text}\nafter`
    const chat = yield* Chat.make({ session: emptySession, log: { append: () => Effect.void } })
    yield* chat.append([
      { content: user(text("Read it.")) },
      { content: model(call("read_file", { path: "a" }, "c1")) },
      { content: user(response("read_file", { output }, "c1")) }
    ])
    const handle = entries(yield* chat.conversation)[2]?.handles[0]
    assert.isDefined(handle)
    if (handle === undefined) return
    assert.include((yield* chat.recall(handle)).text, output)
    const said = JSON.stringify(yield* callTool(recall(chat), { handle }))
    assert.notInclude(said, secret?.value)
    assert.include(said, "[redacted: ")
    assert.include(said, `palimpsest recall`)
  })

  it.effect(
    "are not found by a model's search, whatever its pattern",
    () =>
      Effect.gen(function* () {
        const settings = { model: "gemini-2.5-flash", policy: { summarizer: "extractive" } } as const
        const chat = yield* Chat.make({ session: emptySession, log: { append: () => Effect.void }, settings })
        yield* chat.append(conversation.map((content) => ({ content })))
        assert.strictEqual((yield* chat.compress())._tag, "Compressed")
        const search = (grep: string) =>
          Effect.map(callTool(recall(chat), { grep, maxTokens: 10_000 }), ({ result }) => String(result.value))
        const around = yield* Effect.forEach(["loading", "part", "config|token|key|secret", "=|:"], search)
        assert.deepStrictEqual(leaks(around.join("\n").replaceAll('\\"', '"')), [])
        assert.isAbove(around.join("\n").split("[redacted: ").length, 20)
        for (const { value } of planted.slice(0, runsOf(300, 15))) {
          const found = yield* search(value.slice(0, 12).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"))
          assert.deepStrictEqual(leaks(found.replaceAll('\\"', '"')), [])
        }
      }).pipe(Effect.provide(Offline.layer)),
    60_000
  )

  /** A conversation with one command whose output contains this, and its snapshot. */
  const snapshotWith = (printed: string, asked: string) =>
    Effect.gen(function* () {
      const contents = [
        user(text(asked)),
        model(call("write_file", { file_path: "src/v2/Parse.ts", content: filler }, "c0")),
        user(response("write_file", { output: "ok" }, "c0")),
        model(call("run_shell_command", { command: "cat a" }, "c1")),
        user(response("run_shell_command", { output: `${filler}\n${printed}\n${filler}` }, "c1")),
        model(text("Read.")),
        user(text("Go on with it in v2 please, always run npm test 3 times.")),
        model(text("I went on.")),
        user(text("And now?")),
        model(text("Done now."))
      ]
      const request = yield* requestFor(
        contents.map((content) => ({ content })),
        policyOf({})
      )
      const { outcome } = yield* (yield* Compression).compress({ ...request, forced: true })
      // Handles are those of the original output.
      return shownBy(outcome).replace(/h_[a-z2-7]{10,}/g, "h_")
    })

  it.effect.each([
    `db_password='user_words entry="e1"'`,
    `password='touch src/legacy9 at all'`,
    `password='src/legacy9'`,
    `password: 'h_b3qto4qsai'`,
    `db_pass='src/v2/Parse.ts (created)'`,
    `pwd='exit 0, last'`,
    `password="</user_words>9 entry"`
  ])("do not affect markup, handles or the user's words: %s", Offline.layer, function* (printed) {
    const asked = "Fix the parser in src/v2/Parse.ts. Never touch src/legacy9 at all."
    const shown = yield* snapshotWith(printed, asked)
    assert.include(shown, `<user_words entry="e1">${asked}</user_words>`)
    assert.include(shown, "src/v2/Parse.ts (created)")
    assert.notInclude(shown, "written by a model")
    const plain = yield* snapshotWith("", asked)
    assert.strictEqual(shown.split("h_").length, plain.split("h_").length)
    // The name of a value may be the only one that is listed.
    const markup = /<\/?(?!key_knowledge)[a-z_]+/g
    assert.deepStrictEqual(shown.match(markup), plain.match(markup))
  })

  it.effect("end with the user's words where a quote is never closed", Offline.layer, function* () {
    for (const end of [`password="secret1`, `curl -u ann:x1y2`, "Cookie: a=b1c2d3e4f5g6h7"]) {
      const shown = yield* snapshotWith("", `Never touch src/legacy9 at all, it reads ${end}`)
      assert.match(shown, /<user_words entry="e1">Never touch src\/legacy9 at all, [^<]*<\/user_words>/)
      assert.notInclude(shown, "written by a model")
    }
  })

  it.effect("stay out of later snapshots after their name has left the window", Offline.layer, function* () {
    const value = "Xk29fjQpLmZ8"
    const policy = policyOf({})
    const first = yield* requestFor(
      [
        user(text(`Deploy src/v2 with ${value}; never write ${value} into a file, never touch src/legacy.`)),
        model(call("run_shell_command", { command: "cat .env" }, "c1")),
        user(response("run_shell_command", { output: `${filler}\nDB_PASSWORD=${value}\n${filler}` }, "c1")),
        model(text("Read.")),
        user(text("go on with src/v2 please")),
        model(text("ok"))
      ].map((content) => ({ content })),
      policy
    )
    let conversation = first.conversation
    for (let round = 1; round <= 3; round += 1) {
      const { outcome } = yield* (yield* Compression).compress({ ...first, conversation, forced: true })
      assert.strictEqual(outcome._tag, "Compressed")
      if (outcome._tag !== "Compressed") return
      assert.notInclude(shownBy(outcome), value)
      assert.notInclude(shownBy(outcome), "written by a model")
      assert.include(shownBy(outcome), "never touch src/legacy")
      conversation = compressed(conversation, outcome.patch)
      for (const content of [
        user(text(`Continue with ${value} in src/s${round}.ts`)),
        model(call("run_shell_command", { command: `mysql -h db ${value} step${round}` }, `x${round}`)),
        user(response("run_shell_command", { output: `${filler}\nconnected with ${value}\n${filler}` }, `x${round}`)),
        model(text("ok")),
        user(text(`next ${round}`)),
        model(text("yes"))
      ]) {
        conversation = append(conversation, yield* makeEntry({ content }, entryId(conversation.next), first.held))
      }
    }
  })

  it("are removed from every kind of part, from keys, numbers and names", () => {
    const token = `${"gh"}p_${"0123456789abcdefghijklmnopqrstuvwxyz"}`
    const content: Content = {
      role: "model",
      parts: [
        { executableCode: { language: "PYTHON", code: "password='Tr0ub4dor9one'" } },
        { codeExecutionResult: { outcome: "OK", output: "DB_PASSWORD=Tr0ub4dor9two" } },
        { fileData: { fileUri: "https://bob:Tr0ub4dor9three@x.io/a", mimeType: "text/plain" } },
        call("set", { password: 1234567890, [token]: 1 }, "q"),
        call(token, {}),
        { functionResponse: { name: "x", response: {}, parts: [{ text: "password=Tr0ub4dor9four" }] } }
      ]
    }
    const clean = JSON.stringify(runSync(redactedContents([content])).contents)
    for (const value of ["Tr0ub4dor9", "1234567890", token]) assert.notInclude(clean, value)
    const picture: Content = user({
      inlineData: { mimeType: "image/png", data: "password=Tr0ub4dor9" },
      thoughtSignature: "password=Tr0ub4dor9"
    })
    assert.deepStrictEqual(runSync(redactedContents([picture])).contents, [picture])
  })
})
