import { codexReader } from "../../../../src/domain/transcripts/codex/CodexReader.ts"
import { Generated, itIsReadAsItHappened } from "../../../support/generated.ts"

/**
 * Generated rollouts of Codex with the truth after each record: items of the model that join, parallel calls, results in any order,
 * messages of other agents, program texts, counts that repeat, rollbacks, compactions with and without a replacement, and records that
 * nobody knows.
 */

/** A message of the truth. */
interface Said {
  readonly by: "user" | "model" | "answers" | "program"
  readonly parts: Array<string>
}
type Step =
  | Said
  | { readonly by: "compaction"; readonly insert: ReadonlyArray<string>; readonly tokens: number | undefined }

class Rollout extends Generated {
  private steps: Array<Step> = []
  private open: Said | undefined
  private total = 0
  private tokens: number | undefined

  constructor(seed: number) {
    super(seed)
    this.write({ type: "session_meta", payload: { id: "s", cwd: "/w", cli_version: "0.144.0" } })
    for (let n = 4 + this.below(24); n > 0; n -= 1) this.step()
  }

  protected override said(): ReadonlyArray<string> {
    return this.steps.flatMap((step) =>
      step.by === "compaction"
        ? [`compaction (auto, ${step.tokens ?? "?"}), kept from nothing`, ...step.insert.map((line) => `+ ${line}`)]
        : [`${step.by === "answers" ? "user" : step.by}: ${step.parts.join(" | ")}`]
    )
  }

  protected override write(record: object): void {
    super.write({ timestamp: "2026-01-01T00:00:01.000Z", ...record })
  }

  private item(payload: object, by: Said["by"], ...parts: ReadonlyArray<string>): void {
    const joins = (by === "model" || by === "answers") && this.open?.by === by
    if (!joins) this.steps.push((this.open = { by, parts: [] }))
    this.open?.parts.push(...parts)
    this.write({ type: "response_item", payload })
  }

  private user(text: string, by: "user" | "program" = "user"): void {
    this.item({ type: "message", role: "user", content: [{ type: "input_text", text }] }, by, text)
  }

  private step(): void {
    this.oneOf([
      () => this.user(this.fresh()),
      () => this.user(`<environment_context>${this.fresh()}</environment_context>`, "program"),
      () => this.agentMessage(),
      () => this.say(),
      () => this.say(),
      () => this.calls(),
      () => this.calls(),
      () => this.reason(),
      () => this.count(),
      () => this.count(),
      () => this.rollBack(),
      () => this.compact(),
      () => this.hologram({ type: "hologram", payload: {} }),
      () => this.write({ type: "event_msg", payload: { type: "agent_message", message: "again" } })
    ])
  }

  private agentMessage(): void {
    const text = `Message Type: MESSAGE\nTask name: /root\nSender: /root/a\nPayload:\n${this.fresh()}`
    const sent = { author: "/root/a", recipient: "/root" }
    if (this.below(2) === 0) {
      return this.item({ type: "agent_message", ...sent, content: [{ type: "input_text", text }] }, "program", text)
    }
    this.steps.push((this.open = { by: "program", parts: [text] }))
    this.write({ type: "inter_agent_communication", payload: { ...sent, content: text, trigger_turn: false } })
  }

  private say(): void {
    const text = this.fresh()
    this.item({ type: "message", role: "assistant", content: [{ type: "output_text", text }] }, "model", text)
  }

  private reason(): void {
    const text = this.fresh()
    this.item({ type: "reasoning", summary: [{ type: "summary_text", text }] }, "model", `~${text}`)
  }

  private calls(): void {
    const ids = Array.from({ length: 1 + this.below(3) }, () => this.fresh())
    for (const call_id of ids) {
      this.item(
        { type: "function_call", name: "read", arguments: '{"a":1}', call_id },
        "model",
        `read(${call_id} {"a":1})`
      )
    }
    if (this.below(3) === 0) ids.reverse()
    for (const call_id of ids) {
      this.item({ type: "function_call_output", call_id, output: "x" }, "answers", `read[${call_id}] {"output":"x"}`)
    }
  }

  /** Counts end the response of the model; the same totals again only report limits. */
  private count(): void {
    const isAgain = this.total > 0 && this.below(3) === 0
    if (!isAgain) {
      this.total += 10
      this.counted += 1
    }
    const counts = { input_tokens: 8, output_tokens: 2, total_tokens: 10 }
    const info = { last_token_usage: counts, total_token_usage: { total_tokens: this.total } }
    this.tokens = 10
    if (!isAgain && this.open?.by === "model") this.open = undefined
    this.write({ type: "event_msg", payload: { type: "token_count", info } })
  }

  private rollBack(): void {
    const isTyped = (step: Step | undefined) => step?.by === "user"
    const first = this.steps.findIndex(isTyped)
    let from = this.steps.findLastIndex(isTyped)
    if (from >= 0) {
      while (from > first && this.steps[from - 1]?.by === "program") from -= 1
      this.steps = this.steps.slice(0, from)
      this.open = undefined
    }
    this.write({ type: "event_msg", payload: { type: "thread_rolled_back", num_turns: 1 } })
  }

  private compact(): void {
    const summary = this.fresh()
    const last = this.steps.findLastIndex(({ by }) => by === "compaction")
    const typed = this.steps
      .slice(Math.max(0, last))
      .flatMap((step) =>
        step.by === "compaction"
          ? step.insert.filter((line) => line.startsWith("user: "))
          : step.by === "user"
            ? [`user: ${step.parts.join(" | ")}`]
            : []
      )
    const isReplaced = this.below(2) === 0
    const kept = isReplaced ? typed.slice(-1) : typed
    const message = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] })
    const history = [...kept.map((line) => message(line.slice("user: ".length))), message(summary)]
    this.steps.push({ by: "compaction", insert: [...kept, `summary: ${summary}`], tokens: this.tokens })
    this.open = undefined
    this.tokens = undefined
    this.write({
      type: "compacted",
      payload: { message: summary, ...(isReplaced ? { replacement_history: history } : {}) }
    })
  }
}

itIsReadAsItHappened("codex", codexReader, (seed) => new Rollout(seed))
