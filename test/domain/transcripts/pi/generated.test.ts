import { piReader } from "../../../../src/domain/transcripts/pi/PiReader.ts"
import { Generated, itIsReadAsItHappened } from "../../../support/generated.ts"

/**
 * Generated sessions of Pi with the truth after each entry: a tree of messages, parallel calls, branches, compactions, commands of the
 * user, messages of extensions, and entries that are no messages.
 */

/** What an entry adds to the conversation of its path. */
type Step =
  | { readonly line: string; readonly isResult: boolean; readonly id: string }
  | { readonly compaction: string; readonly kept: string }

/** A path of the tree, as its steps. */
const truthOf = (path: ReadonlyArray<Step>): ReadonlyArray<string> => {
  const lines: Array<string> = []
  /** The number of the message that an entry belongs to. */
  const numbers = new Map<string, number>()
  let messages = 0
  let isOpen = false
  for (const step of path) {
    if ("compaction" in step) {
      lines.push(
        `compaction (auto, 7), kept from ${numbers.get(step.kept) ?? "nothing"}`,
        `+ summary: ${step.compaction}`
      )
      isOpen = false
      continue
    }
    if (step.isResult && isOpen) lines.push(`${lines.pop() ?? ""} | ${step.line}`)
    else {
      lines.push(step.isResult ? `user: ${step.line}` : step.line)
      messages += 1
    }
    numbers.set(step.id, messages - 1)
    isOpen = step.isResult
  }
  return lines
}

class Session extends Generated {
  private readonly paths = new Map<string, ReadonlyArray<Step>>()
  private path: ReadonlyArray<Step> = []
  private parent: string | null = null

  constructor(seed: number) {
    super(seed)
    super.write({ type: "session", version: 3, id: "s", cwd: "/w" })
    for (let n = 4 + this.below(24); n > 0; n -= 1) this.step()
  }

  protected override said(): ReadonlyArray<string> {
    return truthOf(this.path)
  }

  protected override write(record: object, step?: (id: string) => Step): void {
    const id = this.fresh()
    const parentId = this.parent
    this.parent = id
    if (step !== undefined) this.path = [...this.path, step(id)]
    this.paths.set(id, this.path)
    super.write({ id, parentId, timestamp: "2026-01-01T00:00:01.000Z", ...record })
  }

  private message(message: object, line: string, isResult = false): void {
    this.write({ type: "message", message }, (id) => ({ line, isResult, id }))
  }

  private step(): void {
    const text = this.fresh()
    const block = { type: "text", text }
    this.oneOf([
      () => this.message({ role: "user", content: text }, `user: ${text}`),
      () => this.message({ role: "user", content: [block] }, `user: ${text}`),
      () =>
        this.message(
          { role: "assistant", content: [{ type: "thinking", thinking: "hm" }, block] },
          `model: ~hm | ${text}`
        ),
      () => this.calls(),
      () => this.calls(),
      () =>
        this.message(
          { role: "bashExecution", command: text, output: "x", exitCode: 0 },
          `program: $ ${text}\nx\nexit code 0`
        ),
      () =>
        this.write({ type: "message", message: { role: "bashExecution", command: text, excludeFromContext: true } }),
      () =>
        this.write({ type: "custom_message", content: text }, (id) => ({
          line: `program: ${text}`,
          isResult: false,
          id
        })),
      () => this.write({ type: "model_change", modelId: "m" }),
      () => this.hologram({ type: "hologram" }),
      () => this.branch(),
      () => this.compact(text)
    ])
  }

  private calls(): void {
    const ids = Array.from({ length: 1 + this.below(3) }, () => this.fresh())
    const content = ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { a: 1 } }))
    this.message({ role: "assistant", content }, `model: ${ids.map((id) => `read(${id} {"a":1})`).join(" | ")}`)
    for (const toolCallId of ids) {
      const result = { role: "toolResult", toolCallId, toolName: "read", content: "x" }
      this.message(result, `read[${toolCallId}] {"output":"x"}`, true)
    }
  }

  /** The next entry follows an earlier one. */
  private branch(): void {
    const ids = [...this.paths.keys()]
    const id = ids[this.below(ids.length)]
    if (id === undefined) return
    this.parent = id
    this.path = this.paths.get(id) ?? []
  }

  private compact(summary: string): void {
    const shown = this.path.flatMap((step) => ("id" in step ? [step.id] : []))
    const kept = shown[this.below(shown.length)]
    if (kept === undefined) return
    this.write({ type: "compaction", summary, firstKeptEntryId: kept, tokensBefore: 7 }, () => ({
      compaction: summary,
      kept
    }))
  }
}

itIsReadAsItHappened("pi", piReader, (seed) => new Session(seed))
