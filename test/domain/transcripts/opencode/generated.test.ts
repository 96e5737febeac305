import { assert, it } from "@effect/vitest"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { opencodeReader, readOpencodeDocument } from "../../../../src/domain/transcripts/opencode/OpencodeReader.ts"
import { Generated, generatedRuns, itIsReadAsItHappened } from "../../../support/generated.ts"
import { ok, reading, told } from "../../../support/reading.ts"

/**
 * Generated sessions of opencode with the truth after each row: messages whose parts come one by one, parallel calls, refusals, files,
 * texts that opencode wrote, subtasks, compactions that end and others that do not, messages that the user took back, and parts, rows and
 * roles that nobody knows. The rows in any order, and the document of an export, are the same session.
 */

type Json = Readonly<Record<string, unknown>>
/** What a part adds: words in the voice of `by`, or nothing that anybody said. */
interface Added {
  readonly by?: "user" | "program" | "model" | "answers"
  readonly line?: string
  /** Whether it is a part of a call, which results may follow at once. */
  readonly isCall?: boolean
}
interface Message {
  readonly id: string
  readonly data: Json
  readonly parts: Array<{ readonly data: Json; readonly added: ReadonlyArray<Added> }>
}

const picture = { type: "file", mime: "image/png", url: "data:image/png;base64,aGk=" }
const pictureLine = '{"inlineData":{"mimeType":"image/png","data":"aGk="}}'

/** The messages in the user's role that a message gives: each part in its voice, a file in that of the text before it. */
const ofUser = ({ parts }: Message): ReadonlyArray<string> => {
  const all = parts.flatMap(({ added }) => added)
  let by: Added["by"] = all.some((one) => one.by === "user") ? "user" : "program"
  const messages: Array<{ readonly by: Added["by"]; readonly lines: Array<string> }> = []
  for (const one of all) {
    if (one.line === undefined) continue
    by = one.by ?? by
    if (messages.at(-1)?.by !== by) messages.push({ by, lines: [] })
    messages.at(-1)?.lines.push(one.line)
  }
  return messages.map(({ by: speaker, lines }) => `${speaker}: ${lines.join(" | ")}`)
}

/** The answers of the model, each with its results. Anything but another call after results begins the next one. */
const ofModel = ({ parts }: Message): ReadonlyArray<string> => {
  const rounds: Array<{ readonly said: Array<string>; readonly answers: Array<string> }> = [{ said: [], answers: [] }]
  for (const { added } of parts) {
    if (!added.some(({ isCall }) => isCall) && (rounds.at(-1)?.answers.length ?? 0) > 0) {
      rounds.push({ said: [], answers: [] })
    }
    for (const { by, line } of added) {
      if (line !== undefined) rounds.at(-1)?.[by === "answers" ? "answers" : "said"].push(line)
    }
  }
  return rounds.flatMap(({ answers, said }) => [
    ...(said.length > 0 ? [`model: ${said.join(" | ")}`] : []),
    ...(answers.length > 0 ? [`user: ${answers.join(" | ")}`] : [])
  ])
}

const truthOf = (messages: ReadonlyArray<Message>, reverted?: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  /** The number of the first message that each message of the session gave. */
  const numbers = new Map<string, number>()
  const asked = new Map<string, Json>()
  let count = 0
  for (const message of messages) {
    if (message.id === reverted) break
    const request = message.parts.find(({ data }) => data.type === "compaction")
    const { finish, parentID, role, summary } = message.data
    const compaction = asked.get(String(parentID))
    if (role === "user" && request !== undefined) asked.set(message.id, request.data)
    else if (summary === true && finish !== undefined && compaction !== undefined) {
      asked.delete(String(parentID))
      const kept = numbers.get(String(compaction.tail_start_id)) ?? "nothing"
      const text = message.parts.flatMap(({ added }) => added.flatMap(({ line }) => line ?? [])).join("\n\n")
      lines.push(`compaction (${compaction.auto === false ? "manual" : "auto"}, ?), kept from ${kept}`)
      if (text !== "") lines.push(`+ summary: ${text}`)
    } else {
      const given = role === "user" ? ofUser(message) : role === "assistant" ? ofModel(message) : []
      if (given.length > 0) numbers.set(message.id, count)
      count += given.length
      lines.push(...given)
    }
  }
  return lines
}

class Session extends Generated {
  readonly messages: Array<Message> = []
  private time = 0

  constructor(seed: number) {
    super(seed)
    this.write({ kind: "session", id: "ses_1", directory: "/w", version: "1.18.0" })
    for (let n = 2 + this.below(12); n > 0; n -= 1) this.step()
  }

  protected override said(): ReadonlyArray<string> {
    return truthOf(this.messages)
  }

  private message(data: Json): Message {
    this.time += 1
    const message: Message = { id: `msg_${this.fresh()}`, data: { ...data, time: { created: this.time } }, parts: [] }
    this.messages.push(message)
    if (data.tokens !== undefined) this.counted += 1
    this.write({ kind: "message", id: message.id, time_created: this.time, data: message.data })
    return message
  }

  private part(message: Message, data: Json, ...added: ReadonlyArray<Added>): void {
    message.parts.push({ data, added })
    this.write({ kind: "part", id: `prt_${this.fresh()}`, message_id: message.id, data })
  }

  private step(): void {
    this.oneOf([
      () => this.user(),
      () => this.user(),
      () => this.answer(),
      () => this.answer(),
      () => this.answer(),
      () => this.compact(),
      () => void this.message({ role: "critic" }),
      () => this.hologram({ kind: "hologram", id: this.fresh() })
    ])
  }

  private user(): void {
    const message = this.message({ role: "user" })
    for (let n = 1 + this.below(4); n > 0; n -= 1) {
      const text = this.fresh()
      this.oneOf([
        () => this.part(message, { type: "text", text }, { by: "user", line: text }),
        () => this.part(message, { type: "text", text }, { by: "user", line: text }),
        () => this.part(message, { type: "text", text, synthetic: true }, { by: "program", line: text }),
        () => this.part(message, { type: "text", text, ignored: true }),
        () => this.part(message, picture, { line: pictureLine }),
        () => this.part(message, { type: "file", filename: text, url: "file:///a" }, { line: `[file ${text}]` }),
        () => this.part(message, { type: "subtask", prompt: text }, { line: text }),
        () => this.part(message, { type: "hologram" })
      ])
    }
  }

  private answer(): void {
    const isCounted = this.below(3) > 0
    const tokens = { input: 1, output: 2, reasoning: 3, cache: { read: 4, write: 5 } }
    const message = this.message({ role: "assistant", modelID: "m", ...(isCounted ? { tokens } : {}) })
    for (let n = this.below(6); n > 0; n -= 1) {
      const text = this.fresh()
      this.oneOf([
        () => this.part(message, { type: "text", text }, { by: "model", line: text }),
        () => this.part(message, { type: "reasoning", text }, { by: "model", line: `~${text}` }),
        () => this.part(message, picture, { by: "model", line: pictureLine }),
        () => this.part(message, { type: ["step-start", "step-finish", "hologram"][this.below(3)] }),
        () => this.call(message),
        () => this.call(message)
      ])
    }
  }

  private call(message: Message): void {
    const [callID, words] = [this.fresh(), this.fresh()]
    const made: Added = { by: "model", line: `read(${callID} {"a":1})`, isCall: true }
    const result = (response: Json): Added => ({ by: "answers", line: `read[${callID}] ${JSON.stringify(response)}` })
    const tool = (state: Json) => ({ type: "tool", callID, tool: "read", state: { input: { a: 1 }, ...state } })
    this.oneOf([
      () => this.part(message, tool({ status: "completed", output: words }), made, result({ output: words })),
      () =>
        this.part(
          message,
          tool({ status: "completed", output: words, metadata: { exit: 1 }, attachments: [picture] }),
          made,
          result({ error: words }),
          { by: "answers", line: pictureLine }
        ),
      () => this.part(message, tool({ status: "error", error: words }), made, result({ error: words })),
      () => this.part(message, tool({ status: "running" }), made)
    ])
  }

  private compact(): void {
    const kept = this.messages[this.below(this.messages.length + 1)]
    const tail = kept === undefined ? {} : { tail_start_id: kept.id }
    const request = this.message({ role: "user" })
    this.part(request, { type: "compaction", auto: this.below(2) === 0, ...tail })
    const ends = this.below(3) === 0 ? {} : { finish: "stop" }
    const summary = this.message({ role: "assistant", parentID: request.id, summary: true, ...ends })
    for (let n = this.below(3); n > 0; n -= 1) {
      const text = this.fresh()
      this.part(summary, { type: "text", text }, { by: "model", line: text })
    }
  }
}

const read = reading(opencodeReader)
const readRows = (rows: ReadonlyArray<Json>) => ok(read(rows.map((row) => JSON.stringify(row))))

itIsReadAsItHappened("opencode", opencodeReader, (seed) => new Session(seed), "row: hologram")

it("the rows in any order, an export, and what was taken back", () => {
  for (let seed = 1; seed <= generatedRuns; seed += 1) {
    const session = new Session(seed)
    const { messages, records: rows } = session
    const reverted = messages[session.below(messages.length + 1)]?.id
    const revert = reverted === undefined ? {} : { revert: { messageID: reverted } }
    const truth = truthOf(messages, reverted)
    const isPart = (row: Json) => row["kind"] === "part"
    const others = rows.filter((row) => !isPart(row)).map((row) => ({ row, place: session.random() }))
    const shuffled = others.sort((one, other) => one.place - other.place).map(({ row }) => row)
    const all = [...rows.filter(isPart), ...shuffled].map((row) =>
      row["kind"] === "session" ? { ...row, ...revert } : row
    )
    assert.deepStrictEqual(told(readRows(all)), truth, `seed ${seed}, in another order`)
    const document = {
      info: { id: "ses_1", directory: "/w", ...revert },
      messages: messages.map(({ data, id, parts }) => ({ info: { id, ...data }, parts: parts.map((one) => one.data) }))
    }
    assert.deepStrictEqual(told(ok(Work.runSync(readOpencodeDocument(document)))), truth, `seed ${seed}, an export`)
  }
})
