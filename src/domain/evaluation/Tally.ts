import type { Part, Role } from "../content/Content.ts"
import { type LargePart, type PartKind, preview } from "./PartKind.ts"

/** The number of some messages, parts or calls, their tokens, and their tokens in the view. */
export interface Sum {
  count: number
  tokens: number
  view: number
}

/** Returns the sum under a key, and creates it when it is missing. */
export const sumOf = <K>(sums: Map<K, Sum>, key: K): Sum => {
  const existing = sums.get(key)
  if (existing !== undefined) return existing
  const fresh = { count: 0, tokens: 0, view: 0 }
  sums.set(key, fresh)
  return fresh
}

const bySize = (a: { readonly tokens: number }, b: { readonly tokens: number }) => b.tokens - a.tokens

/** Number of largest parts to report. */
const largestCount = 10

/** Sums tokens by role, kind and tool, and collects the largest parts. Mutable. */
export class Tally {
  readonly roles = new Map<Role, Sum>()
  readonly kinds = new Map<PartKind, Sum>()
  readonly calls = new Map<string, Sum>()
  readonly outputs = new Map<string, Sum>()
  /** Tokens of the environment message, which no other sum includes. */
  environment = 0
  /** Candidates for the largest parts, in no order. */
  largest: Array<LargePart> = []
  private least = -1

  /** Adds a part to the largest ones if it is one of them. */
  add(large: Omit<LargePart, "preview">, part: Part): void {
    if (large.tokens <= this.least) return
    this.largest.push({ ...large, preview: preview(part) })
    if (this.largest.length < 8 * largestCount) return
    this.largest = this.largest.sort(bySize).slice(0, largestCount)
    this.least = this.largest.at(-1)?.tokens ?? this.least
  }

  /** Returns the sums as an inspection has them, largest first. */
  sums() {
    return {
      roles: [...this.roles].map(([role, { count, tokens, view }]) => ({ role, messages: count, tokens, view })),
      kinds: [...this.kinds]
        .map(([kind, { count, tokens, view }]) => ({ kind, parts: count, tokens, view }))
        .sort(bySize),
      tools: [...new Set([...this.calls.keys(), ...this.outputs.keys()])]
        .map((tool) => {
          const called = sumOf(this.calls, tool)
          const answered = sumOf(this.outputs, tool)
          return {
            tool,
            calls: called.count,
            arguments: called.tokens,
            outputs: answered.count,
            output: answered.tokens,
            view: called.view + answered.view
          }
        })
        .sort((a, b) => b.arguments + b.output - (a.arguments + a.output)),
      largest: [...this.largest].sort(bySize).slice(0, largestCount)
    }
  }
}
