import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { applyEvent, emptySession } from "../../../src/domain/session/Session.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { writeClaude } from "../../../src/domain/transcripts/claude/ClaudeWriter.ts"
import { writeCodex } from "../../../src/domain/transcripts/codex/CodexWriter.ts"
import { searchedTexts } from "../../../src/domain/transcripts/facts/SessionSearch.ts"
import { writeGemini, writeGeminiDocument } from "../../../src/domain/transcripts/gemini/GeminiWriter.ts"
import { writePi } from "../../../src/domain/transcripts/pi/PiWriter.ts"
import { SessionSecrets } from "../../../src/domain/transcripts/RecordSecrets.ts"
import type { Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { importTranscript } from "../../../src/services/transcripts/ImportTranscript.ts"
import { redactEvents, redactFile } from "../../../src/services/transcripts/RedactSession.ts"
import * as Export from "../../../src/services/transcripts/TranscriptExport.ts"
import { load } from "../../../src/services/transcripts/Transcripts.ts"
import { root } from "../../support/paths.ts"
import { givenAway, type Planted, plantedSecrets } from "../../support/secrets.ts"
import { linesOf } from "../../support/transcripts.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Three hundred secrets of thirty kinds in sessions of every agent: each is found, and none is in a copy without secrets. */

const planted = plantedSecrets()
const filler = "a line without a word\n".repeat(500)

/** A turn with a secret in a message, in the arguments of a call, in its result, or in a result so large that it is a blob. */
const turnOf = ({ text: words }: Planted, at: number): ReadonlyArray<Content> => [
  user(text(at % 4 === 0 ? `Go on with part ${at}. It says: ${words}` : `Go on with part ${at}.`)),
  model(call("shell", { command: at % 4 === 1 ? `deploy --part ${at}\n${words}` : `cat ${at}.conf` }, `c${at}`)),
  user(
    response(
      "shell",
      {
        output:
          at % 4 === 2
            ? `loading\n${words}\nexit 1`
            : at % 40 === 3
              ? `${filler}${words}`
              : at % 4 === 3
                ? `a\n${words}`
                : "done"
      },
      `c${at}`
    )
  ),
  model(text(`Part ${at} is done.`))
]

const transcript: Transcript = {
  format: "claude",
  session: "s",
  cwd: "/p",
  model: "claude-sonnet-4-5",
  steps: planted.flatMap(turnOf).map((content) => ({ _tag: "Message", draft: { content, at: 1_770_000_000_000 } })),
  skipped: {}
}

const both = { secrets: true, personal: true, known: [] }

const collected = (lines: ReadonlyArray<string>) => {
  const secrets = new SessionSecrets(both)
  const found = lines.flatMap((line) => runSync(secrets.collect(line)))
  secrets.settle()
  return { secrets, found: found.map(({ value }) => value).join("\n") }
}

/** The JSON of a record without its strings. */
const shapeOf = (line: string): string =>
  JSON.stringify(JSON.parse(line), (_, value) => (typeof value === "string" ? "" : value))

const services = Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer)

const formats = {
  claude: writeClaude,
  codex: writeCodex,
  gemini: writeGemini,
  "gemini document": writeGeminiDocument,
  pi: writePi
}

describe("names of accounts", () => {
  const record = JSON.stringify({
    type: "user",
    cwd: "/home/margarete/work",
    text: "Margarete has C:\\Users\\horst.w\\x and runner has /home/runner/y"
  })

  it.effect("are removed with the home folders that a session names, wherever they occur as a word", function* () {
    const secrets = new SessionSecrets({ secrets: true, personal: true, known: [], accounts: ["ottokar"] })
    const file = `${record}\n{"text":"ottokar asked"}\n`
    for (const line of file.trimEnd().split("\n")) runSync(secrets.collect(line))
    secrets.settle()
    const { copy } = yield* redactFile(file, secrets)
    for (const name of ["margarete", "horst", "ottokar"]) assert.notInclude(copy.toLowerCase(), name)
    assert.include(copy, "[redacted: home folder #1]/work")
    assert.include(copy, "runner has /home/runner/y")
  })

  it.effect("stay unless their removal is requested", function* () {
    const secrets = new SessionSecrets({ secrets: true, personal: true, known: [] })
    runSync(secrets.collect(record))
    secrets.settle()
    assert.strictEqual((yield* redactFile(record, secrets)).copy, record)
  })
})

describe("RedactSession", () => {
  for (const [name, writer] of Object.entries(formats)) {
    it.effect(`${name}: finds every planted secret, and a copy has none and the same structure`, function* () {
      const lines = linesOf(writer, transcript)
      assert.isAtLeast(givenAway(lines.join("\n"), planted).length, 300)
      const { found, secrets } = collected(lines)
      assert.isAtLeast(givenAway(found, planted).length, 0.98 * planted.length)
      const { copy } = yield* redactFile(lines.join("\n"), secrets)
      assert.deepStrictEqual(givenAway(copy, planted), [])
      assert.isFalse(secrets.isRevealedBy(copy))
      assert.isTrue(copy.split("\n").map(shapeOf).join("\n") === lines.map(shapeOf).join("\n"), "the structure changed")
      if (name !== "pi") return
      const again = yield* redactFile(copy, secrets)
      assert.strictEqual(again.copy, copy)
    })
  }

  it.effect(
    "our own log: no file of a copy holds a secret, and nothing recalls one",
    FileTempStore.folders.pipe(Layer.provideMerge(Layer.merge(services, NodeServices.layer))),
    function* () {
      const fs = yield* FileSystem.FileSystem
      const events = yield* importTranscript(transcript)
      const { secrets } = collected(linesOf(writeClaude, transcript))
      const { copy, replaced } = yield* redactEvents(events, secrets)
      assert.isAtLeast(replaced, 300)
      const folder = yield* fs.makeTempDirectoryScoped()
      for (const format of ["palimpsest", "claude"] as const)
        yield* Export.write(`${folder}/${format}.jsonl`, format, copy)
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
      // The log, its blobs of large results, and the log beside the other format.
      assert.isAtLeast(files.length, 4)
      for (const { name, parentPath } of files) {
        assert.deepStrictEqual(givenAway(readFileSync(path.join(parentPath, name), "utf8"), planted), [], name)
      }
      const { session } = yield* load(`${folder}/palimpsest.jsonl`)
      const before = entries(events.reduce(applyEvent, emptySession).conversation)
      const after = entries(session.conversation)
      assert.strictEqual(after.length, before.length)
      const kept = new Set(after.flatMap(({ handles }) => handles))
      for (const [at, entry] of after.entries()) {
        if (JSON.stringify(entry.content) === JSON.stringify(before[at]?.content)) continue
        for (const handle of before[at]?.handles ?? []) assert.isFalse(kept.has(handle))
      }
    }
  )

  it("sees through escapes, JSON within JSON and base64, and gives a value the same name everywhere", () => {
    const token = `${"gh"}p_${"Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4Ef7Hi0"}`
    const secrets = new SessionSecrets({ ...both, known: [{ kind: "DEPLOY_KEY", value: "harbour lights 42" }] })
    const escaped = `{"a":"\\u0067hp_${token.slice(4)}","n":1.0,  "b":"${btoa(`xy:${token}`)}"}`
    const nested = JSON.stringify({ arguments: JSON.stringify({ command: ["sh", `echo "${token}"\n`] }) })
    const known = JSON.stringify({ text: `${btoa("harbour lights 42")} harbour lights 42` })
    const records = [escaped, nested, known]
    for (const record of records) runSync(secrets.collect(record))
    secrets.settle()
    const [first = "", second = "", third = ""] = records.map((record) => runSync(secrets.replace(record)).text)
    assert.match(
      first,
      /^\{"a":"\[redacted: GitHub token #1\]","n":1\.0, {2}"b":"\w*\[redacted: GitHub token #1\]\w*=*"\}$/
    )
    assert.deepStrictEqual(JSON.parse(JSON.parse(second).arguments), {
      command: ["sh", 'echo "[redacted: GitHub token #1]"\n']
    })
    assert.deepStrictEqual(JSON.parse(third).text.match(/\[[^\]]+\]/g), [
      "[redacted: DEPLOY_KEY #1]",
      "[redacted: DEPLOY_KEY #1]"
    ])
  })

  it.effect("replaces numbers that are passwords by 0, and the record keeps its form", function* () {
    const record = `{"login":{"password": 83920174,"pin":4711},"n":1.50,"pins":[5822, 6933],"port":5432,"arguments":${JSON.stringify(
      `{"password": 71829304, "passwords": ["aB3dE5", 92837465], "user":"ann", "token_count": 123456}`
    )},"max_tokens":128000}`
    const secrets = new SessionSecrets(both)
    const found = runSync(secrets.collect(record))
    secrets.settle()
    assert.deepStrictEqual(found.map(({ value }) => value).toSorted(), [
      "4711",
      "5822",
      "6933",
      "71829304",
      "83920174",
      "92837465",
      "aB3dE5"
    ])
    const { copy, replaced } = yield* redactFile(record, secrets)
    assert.strictEqual(replaced, 7)
    assert.include(copy, `{"login":{"password": 0,"pin":0},"n":1.50,"pins":[0, 0],"port":5432,`)
    assert.include(copy, `"max_tokens":128000}`)
    assert.deepStrictEqual(JSON.parse(JSON.parse(copy).arguments), {
      password: 0,
      passwords: ["[redacted: password #1]", 0],
      user: "ann",
      token_count: 123456
    })
    assert.strictEqual((yield* redactFile(copy, secrets)).copy, copy)
  })

  it.effect("replaces all of a value that is long, and a key that is a list of lines", function* () {
    const line = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zB"
    const lines = [`-----BEGIN ${"PRIVATE"} KEY-----`, line.repeat(2), `${line}==`, `-----END ${"PRIVATE"} KEY-----`]
    const record = JSON.stringify({ client_secret: line.repeat(20), lines, note: "it stays" })
    const secrets = new SessionSecrets(both)
    runSync(secrets.collect(record))
    const { copy } = yield* redactFile(record, secrets)
    assert.notInclude(copy, line.slice(0, 12))
    assert.strictEqual(JSON.parse(copy).lines.length, lines.length)
    assert.strictEqual(JSON.parse(copy).note, "it stays")
  })

  it.effect("searches a text that is no session as a whole", function* () {
    const line = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
    const text = `total 3\n${line}\n17\n${line}\n-----END ${"PRIVATE"} KEY-----\nend\n`
    const { copy, unsearched } = yield* redactFile(text, new SessionSecrets(both))
    assert.notInclude(copy, `${line}\n-----END`)
    assert.match(copy, /^total 3\n[\s\S]*\[redacted: private key #1\]\nend\n$/)
    assert.deepStrictEqual(unsearched, [])
  })

  it.effect("leaves earlier marks as they are, and what they hide", function* () {
    const known = { kind: "DB_PASSWORD", value: "password" }
    const secrets = new SessionSecrets({ ...both, known: [known] })
    const record = JSON.stringify({ text: "the password is hunter2222", password: "hunter3333" })
    runSync(secrets.collect(record))
    secrets.settle()
    const { copy } = yield* redactFile(record, secrets)
    assert.notInclude(copy, "hunter")
    assert.notInclude(copy, "[redacted: [")
    assert.deepStrictEqual(Object.keys(JSON.parse(copy)), ["text", "[redacted: DB_PASSWORD #1]"])
  })

  it.effect("says which parts of a copy no rule read", function* () {
    const bytes = "iVBORw0KGgo".repeat(200)
    const lines = [`{"text":"a"}`, `{"data":"${bytes}"}`, `{"text":"half`, `{"text":"b"}`, `{"text":"still writ`]
    const file = lines.join("\n")
    const { copy, unsearched } = yield* redactFile(file, new SessionSecrets(both))
    assert.strictEqual(copy, file)
    assert.deepStrictEqual(unsearched, [
      { place: "line 2", what: "bytes" },
      { place: "line 3", what: "broken record" }
    ])
  })

  it.effect("says where a secret is that cannot be removed", services, function* () {
    const value = "Xk29fjQpLmZ8wY7vT6sR5"
    const known = { kind: "API_KEY", value }
    const signature = `${"Ab3dEf6hIj9k".repeat(10)}${value}${"Lm2nOp5qRs8t".repeat(10)}`
    const secrets = new SessionSecrets({ ...both, known: [known] })
    secrets.settle()
    const file = `{"text":"a ${value}"}\n{"thinking":"b","signature":"${signature}"}\n`
    const failure = yield* Effect.flip(redactFile(file, secrets))
    assert.match(failure.message, /^a secret in line 2 cannot be removed/)
    assert.notInclude(failure.message, value)
    const events = yield* importTranscript({
      ...transcript,
      steps: ["one", "two"].map((words) => ({
        _tag: "Message",
        draft: { content: user({ text: words, ...(words === "two" ? { thoughtSignature: signature } : {}) }), at: 1 }
      }))
    })
    const other = yield* Effect.flip(redactEvents(events, secrets))
    assert.match(other.message, /^a secret in message 2 cannot be removed/)
    // A value that is a word of the format itself.
    const tag = new SessionSecrets({ ...both, known: [{ kind: "API_KEY", value: "Appended" }] })
    assert.match((yield* Effect.flip(redactEvents(events, tag))).message, /^a secret in message 1 cannot be removed/)
  })

  it("reads a signature that is none", () => {
    const token = `${"gh"}p_${"Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4Ef7Hi0"}`
    const secrets = new SessionSecrets(both)
    const signature = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z".repeat(4)
    const record = JSON.stringify({ signature: token, thoughtSignature: `by ${token}`, inner: { signature } })
    const { text: copy } = runSync(secrets.replace(record))
    assert.notInclude(copy, token)
    assert.include(copy, signature)
  })

  it("replaces a secret in the name of a file by a name that every system takes", () => {
    const token = `${"gh"}p_${"Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4Ef7Hi0"}`
    const secrets = new SessionSecrets(both)
    assert.strictEqual(
      secrets.replaceInPath(`tool-results/toolu_${token}.txt`),
      "tool-results/toolu_redacted-GitHub-token-1.txt"
    )
    assert.strictEqual(secrets.replaceInPath("tool-results/toolu_01.txt"), "tool-results/toolu_01.txt")
  })

  it("finds personal data that has a form, and no example of it", () => {
    const kindsIn = (words: string) =>
      runSync(new SessionSecrets(both).collect(JSON.stringify({ text: words }))).map(({ kind }) => kind)
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["write to jane.doe@acme.io", ["e-mail address"]],
      ["git@github.com:a/b, user@example.com, 1+bot@users.noreply.github.com, icon@2x.png", []],
      ["call +49 30 901820 now", ["telephone number"]],
      ["+12 -34 lines, +1.2.3.4", []],
      ["IBAN GB82 WEST 1234 5698 7654 32", ["bank account"]],
      ["GB82 WEST 1234 5698 7654 33", []],
      ["pay with 4539 1488 0343 6467", ["payment card"]],
      ["card 4539148803436467", ["payment card"]],
      ["id 4539148803436467, 42192107-8208-4960-b702-debd1ab26890", []],
      ["SSN 219-09-9999", ["social security number"]]
    ]
    for (const [words, kinds] of cases) assert.deepStrictEqual(kindsIn(words), kinds, words)
  })

  it("finds at most one secret in 1,000 clean texts", () => {
    const texts = ["pi-1019-lines", "claude-code-1512-lines"].flatMap((name) =>
      String(gunzipSync(readFileSync(path.join(root, `test/fixtures/sessions/${name}.jsonl.gz`))))
        .split("\n")
        .filter((line) => line !== "")
        .flatMap((line) => searchedTexts(JSON.parse(line)))
        .filter(({ length }) => length > 100)
    )
    const clean = texts.slice(0, 1_000).map((words) => words.slice(0, 2_000))
    assert.strictEqual(clean.length, 1_000)
    const secrets = new SessionSecrets(both)
    const found = clean.filter(
      (words) => runSync(secrets.collect(JSON.stringify({ type: "user", text: words }))).length > 0
    )
    assert.isAtMost(found.length, 1)
  })
})
