import { Arbitrary, Schema } from "effect"
import { type Content, needsSource, type Part, payload } from "../../src/domain/content/Content.ts"
import { Author, type Draft, sourceOf } from "../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../src/domain/conversation/Projection.ts"
import { decode, encode } from "../../src/domain/text/Bytes.ts"
import type { Json } from "../../src/domain/text/JsonObject.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import { runSync } from "../../src/domain/text/SlicedWork.ts"
import { Usage } from "../../src/domain/tokens/Tokens.ts"
import { claudeReader } from "../../src/domain/transcripts/claude/ClaudeReader.ts"
import { writeClaude } from "../../src/domain/transcripts/claude/ClaudeWriter.ts"
import { codexReader } from "../../src/domain/transcripts/codex/CodexReader.ts"
import { writeCodex } from "../../src/domain/transcripts/codex/CodexWriter.ts"
import { detectFormat, isGeminiDocument, isOpencodeRows } from "../../src/domain/transcripts/facts/DetectFormat.ts"
import { geminiReader, readGeminiDocument } from "../../src/domain/transcripts/gemini/GeminiReader.ts"
import { writeGemini, writeGeminiDocument } from "../../src/domain/transcripts/gemini/GeminiWriter.ts"
import { opencodeReader, readOpencodeDocument } from "../../src/domain/transcripts/opencode/OpencodeReader.ts"
import { writeOpencode } from "../../src/domain/transcripts/opencode/OpencodeWriter.ts"
import { piReader } from "../../src/domain/transcripts/pi/PiReader.ts"
import { writePi } from "../../src/domain/transcripts/pi/PiWriter.ts"
import { isProblem, problemText } from "../../src/domain/transcripts/Problem.ts"
import {
  type LineReader,
  VisibleMessages,
  type Step,
  type Transcript,
  type Writer
} from "../../src/domain/transcripts/Transcript.ts"

/** Conversations as any reader could produce them, and stranger ones, for the tests of writers. */

const texts = [
  "",
  " ",
  "hello",
  "two\nlines\r\n",
  "caf\uDCE9",
  "\uDCC3\uDCA9 joins",
  "half \uD83D a pair",
  "\uD83D\uDE00 and \uDCFF",
  '{"role":"user"}',
  "\u2028\u0000\\udc80",
  "(no content)",
  foreignNotes.summary,
  foreignNotes.program,
  runtimeMark,
  // Words that one of the agents, or several, read as more than words.
  "/slash",
  " ?",
  "<session_context>x",
  "<hook_context>x</hook_context>",
  "<state_snapshot>s</state_snapshot>",
  "<environment_context>x</environment_context>",
  "Another language model started to solve this problem and produced a summary",
  "<task-notification>x</task-notification>",
  "**Subject** and description",
  '{"output":"x","metadata":{"exit_code":1}}',
  "x".repeat(9_000)
]
const ids = ["call_0", "call_1", "call_1", "toolu_1", "a|b", "", "9f3c", "answer_1"]
const names = ["read", "shell"]

/** Parts that only their JSON text represents exactly. */
const slices = [
  '{"functionCall":{"name":"read","args":{"n":12345678901234567890,"2":1,"1":2.0}}}',
  '{"functionCall":{"id":"call_0","name":"read","args":{"__proto__":{"x":1},"a":"\\udc80"}}}',
  '{\n "functionCall": {"name": "shell", "id": "call_1"}\r\n}',
  '{"functionResponse":{"id":"call_0","name":"read","response":{"content":[{"type":"text","text":"a"},{"1":1.0}]}}}',
  '{"functionResponse":{"name":"shell","response":{"output":"a\\ud83d"}}}',
  '{"text":"\\udc80 spelled"}',
  '{"inlineData":{"mimeType":"image\\/png","data":"AA"}}',
  '{ "text" : "spaced", "later": [1e3] }',
  '{"text":"t","thought":true,"thoughtSignature":"s","__proto__":5}'
]

const PartSeed = Schema.Union([
  Schema.Struct({ text: Schema.Literals(texts) }),
  Schema.Struct({ text: Schema.String }),
  Schema.Struct({
    text: Schema.Literals(texts),
    thought: Schema.Literal(true),
    thoughtSignature: Schema.optionalKey(Schema.Literals(["c2ln", "gAAAAx"]))
  }),
  Schema.Struct({ text: Schema.Literals(texts), thoughtSignature: Schema.Literal("c2ln") }),
  Schema.Struct({
    functionCall: Schema.Struct({
      id: Schema.optionalKey(Schema.Literals(ids)),
      name: Schema.Literals(names),
      args: Schema.optionalKey(
        Schema.Union([
          Schema.Record(Schema.Literals(["a", "b", "input", "arguments"]), Schema.Literals(texts)),
          Schema.Literals(["text", 5]),
          Schema.Array(Schema.Finite)
        ])
      )
    })
  }),
  Schema.Struct({
    functionResponse: Schema.Struct({
      id: Schema.optionalKey(Schema.Literals(ids)),
      name: Schema.optionalKey(Schema.Literals(names)),
      response: Schema.optionalKey(
        Schema.Union([
          Schema.Struct({ output: Schema.Literals(texts) }),
          Schema.Struct({ error: Schema.Literals(texts) }),
          Schema.Struct({ result: Schema.Literals(texts) }),
          Schema.Struct({
            content: Schema.Array(
              Schema.Union([
                Schema.Struct({ type: Schema.Literal("text"), text: Schema.Literals(texts) }),
                Schema.Struct({ type: Schema.Literal("image"), data: Schema.Literal("AA"), mimeType: Schema.String }),
                Schema.Struct({
                  type: Schema.Literal("image"),
                  source: Schema.Struct({ type: Schema.Literal("base64"), data: Schema.Literal("AA") })
                }),
                Schema.Struct({ type: Schema.Literals(["video", "text"]) })
              ])
            )
          }),
          Schema.Struct({ output: Schema.Finite, extra: Schema.Boolean }),
          Schema.Literals(texts)
        ])
      ),
      parts: Schema.optionalKey(Schema.Array(Schema.Struct({ inlineData: Schema.Struct({}) })))
    })
  }),
  Schema.Struct({
    inlineData: Schema.Struct({
      mimeType: Schema.optionalKey(Schema.Literals(["image/png", "application/pdf", "audio/wav", "image/x"])),
      data: Schema.optionalKey(Schema.Literal("AAAA"))
    })
  }),
  Schema.Struct({
    fileData: Schema.Struct({
      mimeType: Schema.optionalKey(Schema.Literals(["image/png", "video/mp4"])),
      fileUri: Schema.Literals(["https://x.example/a.png", "gs://b/c"])
    })
  }),
  Schema.Struct({ executableCode: Schema.Struct({ code: Schema.String }) }),
  Schema.Struct({}),
  Schema.Struct({ slice: Schema.Literals(slices) })
])

const uuids = ["459e838f-d7ea-4f7d-94ad-2cb4d227dc77", "dd3cc2e6-a191-4331-a0f0-2473e6d7692d", "a1b2c3d4", ""]

const DraftSeed = Schema.Struct({
  role: Schema.Literals(["user", "model"]),
  parts: Schema.Array(PartSeed).check(Schema.isMaxLength(4)),
  author: Schema.optionalKey(Author),
  at: Schema.optionalKey(Schema.Literals([0, 1_763_000_000_000, 1e300, -5.5])),
  model: Schema.optionalKey(Schema.Literals(["claude-x", "gemini-y", "gpt-z"])),
  usage: Schema.optionalKey(Usage),
  ids: Schema.Array(Schema.Literals(uuids)).check(Schema.isMaxLength(3)),
  hint: Schema.optionalKey(Schema.Natural)
})

const StepSeed = Schema.Struct({
  kind: Schema.Literals(["message", "message", "message", "message", "message", "message", "exchange", "compaction"]),
  draft: DraftSeed,
  insert: Schema.Array(Schema.Union([DraftSeed, Schema.Literal("summary")])).check(Schema.isMaxLength(3)),
  /** How many of the messages so far are kept. */
  kept: Schema.Literals([0, 0, 1, 2, 3, 100]),
  trigger: Schema.Literals(["manual", "auto"]),
  tokensBefore: Schema.UndefinedOr(Schema.Literal(170_251))
})

const partOf = (seed: typeof PartSeed.Type): { readonly part: Part; readonly source: string | undefined } => {
  if (!("slice" in seed)) return { part: seed, source: undefined }
  const part: Part = JSON.parse(seed.slice)
  return { part, source: needsSource(part, seed.slice) ? seed.slice : undefined }
}

const draftOf = ({ author, hint, ids: origin, parts: seeds, role, ...about }: typeof DraftSeed.Type): Draft => {
  const made = seeds.map(partOf)
  const sources = made.flatMap(({ source }, index) => (source === undefined ? [] : [[String(index), source] as const]))
  return {
    content: { role, parts: made.map(({ part }) => part), ...(hint === undefined ? {} : { hint }) },
    ...about,
    ...(author === undefined ? {} : { author }),
    ...(sources.length === 0 ? {} : { source: Object.fromEntries(sources) }),
    origin: { line: 1, ids: origin }
  }
}

/** A call and its result, in the usual form. */
const exchange = (n: number): ReadonlyArray<Draft> => [
  { content: { role: "model", parts: [{ functionCall: { id: `x${n % 3}`, name: "read", args: { n } } }] } },
  {
    content: {
      role: "user",
      parts: [{ functionResponse: { id: `x${n % 3}`, name: "read", response: { output: "o" } } }]
    }
  }
]

const stepsOf = (seeds: ReadonlyArray<typeof StepSeed.Type>): ReadonlyArray<Step> => {
  let messages = 0
  return seeds.flatMap(({ draft, insert, kept, kind, tokensBefore, trigger }): ReadonlyArray<Step> => {
    if (kind === "compaction") {
      return [
        {
          _tag: "Compaction",
          insert: insert.map((one) => (one === "summary" ? summary("What was done so far.") : draftOf(one))),
          keptFrom: kept === 0 ? undefined : Math.max(0, messages - kept),
          trigger,
          tokensBefore
        }
      ]
    }
    const drafts = kind === "exchange" ? exchange(messages) : [draftOf(draft)]
    messages += drafts.length
    return drafts.map((one): Step => ({ _tag: "Message", draft: one }))
  })
}

/** Conversations of all kinds of parts, messages and compactions. */
export const transcripts: Arbitrary.Arbitrary<Transcript> = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(StepSeed), { maxLength: 14 }),
  (seeds) => ({
    format: "palimpsest",
    session: "459e838f-d7ea-4f7d-94ad-2cb4d227dc77",
    cwd: "/work/project",
    model: undefined,
    steps: stepsOf(seeds),
    skipped: {}
  })
)

/** The transcript that a reader makes of lines. A problem is a failure of the test. */
export const readLines = (reader: LineReader, lines: ReadonlyArray<string>): Transcript => {
  for (const [index, line] of lines.entries()) {
    const problem = reader.line(JSON.parse(line), line, index + 1)
    if (problem !== undefined) throw new Error(`line ${problem.line}: ${problemText(problem)}`)
  }
  const read = runSync(reader.end())
  if (isProblem(read)) throw new Error(`line ${read.line}: ${problemText(read)}`)
  return read
}

const writers = {
  claude: writeClaude,
  codex: writeCodex,
  gemini: writeGemini,
  pi: writePi,
  opencode: writeOpencode,
  "gemini document": writeGeminiDocument
}
/** A form in which a conversation can be written for an agent. */
export type WrittenForm = keyof typeof writers

/** The text of a file for an agent, through bytes, and what it does not hold. The one way to all writers. */
export const writtenText = (form: WrittenForm, transcript: Transcript) => {
  const work = writers[form](transcript)
  let slices = 0
  let step = work.next()
  for (; step.done !== true; step = work.next()) slices += 1
  const { lines, unheld } = step.value
  return { lines, unheld, slices, text: decode(encode(`${lines.join("\n")}\n`)).text }
}

/** A conversation of these steps. */
export const transcriptOf = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}): Transcript => ({
  format: "palimpsest",
  session: "4d5611e5-241a-462a-8d15-5122611a9569",
  cwd: "/w",
  model: undefined,
  steps,
  skipped: {},
  ...rest
})
/** A message. */
export const said = (content: Content, rest: Partial<Draft> = {}): Step => ({
  _tag: "Message",
  draft: { content, ...rest }
})
/** A message of the user. */
export const says = (words: string): Step => said({ role: "user", parts: [{ text: words }] })
/** A summary of what was said. */
export const summary = (words: string): Draft => ({
  content: { role: "user", parts: [{ text: words }] },
  author: "summary"
})
/** A compaction. */
export const cut = (
  insert: ReadonlyArray<Draft>,
  keptFrom?: number,
  trigger: "manual" | "auto" = "auto",
  tokensBefore?: number
): Step => ({ _tag: "Compaction", insert, keptFrom, trigger, tokensBefore })

/** The records of a written conversation. */
export const recordsOf = (
  form: WrittenForm,
  steps: ReadonlyArray<Step>,
  rest?: Partial<Transcript>
): ReadonlyArray<Json> => writtenText(form, transcriptOf(steps, rest)).lines.map((line): Json => JSON.parse(line))

const lineReaders = {
  claude: claudeReader,
  codex: codexReader,
  gemini: geminiReader,
  pi: piReader,
  opencode: opencodeReader
}

/** The conversation of a file's text, whichever agent's it is. The one way to all readers. */
export const readText = (text: string): Transcript => {
  const format = detectFormat(text)
  if (format === undefined || format === "palimpsest" || format === "contents") throw new Error(`format ${format}`)
  if (format === "gemini" ? !isGeminiDocument(text) : format !== "opencode" || isOpencodeRows(text))
    return readLines(
      lineReaders[format](),
      text.split("\n").filter((line) => line !== "")
    )
  const read = runSync((format === "gemini" ? readGeminiDocument : readOpencodeDocument)(JSON.parse(text), text))
  if (isProblem(read)) throw new Error(problemText(read))
  return read
}

/** The lines as read back from a file: through bytes. */
export const linesOf = (writer: Writer, transcript: Transcript): ReadonlyArray<string> =>
  decode(encode(runSync(writer(transcript)).lines.join("\n")))
    .text.split("\n")
    .filter((line) => line !== "")

/** Every message in order, including those that compactions inserted. */
export const draftsIn = ({ steps }: Transcript): ReadonlyArray<Draft> =>
  steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : step.insert))

/** The messages that the agent saw at the end. */
export const viewOf = ({ steps }: Transcript): ReadonlyArray<Draft> => {
  const shown = new VisibleMessages()
  for (const step of steps) shown.add(step)
  return shown.drafts
}

/** What must be preserved of messages, part by part: the author, the bytes behind the handle, and the JSON. */
export const told = (drafts: ReadonlyArray<Draft>): ReadonlyArray<string> =>
  drafts.flatMap((draft) =>
    draft.content.parts.map((part, index) => {
      const { form, text } = payload(part, sourceOf(draft, index))
      return [draft.content.role, draft.author ?? "", form, text, JSON.stringify(part)].join("\n")
    })
  )

/** What the agent saw after each compaction, and at the end, each as one text. */
export const viewsOf = ({ steps }: Transcript): ReadonlyArray<string> => {
  const shown = new VisibleMessages()
  const views: Array<string> = []
  const see = () => views.push(told(shown.drafts).join("\n"))
  for (const step of steps) {
    shown.add(step)
    if (step._tag === "Compaction") see()
  }
  see()
  return views
}

/** What must be preserved of messages besides their parts. */
export const counted = (drafts: ReadonlyArray<Draft>): ReadonlyArray<unknown> =>
  drafts.flatMap(({ content: { parts: _, ...content }, usage }) => (usage === undefined ? [] : [[content, usage]]))
