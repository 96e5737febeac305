import type { UnknownKinds } from "./Transcript.ts"

/** Counts skipped records, by kind, and knows the kinds that are new to this program. */
export class Skipped {
  private readonly kinds = new Map<string, number>()
  private readonly newKinds = new Set<string>()

  private readonly known: ReadonlySet<string>

  /** `known`: the kinds that the agent's decoder knows and does not read. */
  constructor(known: ReadonlySet<string> = new Set()) {
    this.known = known
  }

  /** Adds one of a kind, or several. */
  add(kind: string, count = 1): void {
    if (count > 0) this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + count)
  }

  /** Adds a record that no fold reads. */
  addRecord(kind: string): void {
    this.add(kind)
    if (!this.known.has(kind)) this.newKinds.add(kind)
  }

  /** The number of each kind, in order of first appearance. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.kinds)
  }

  /** The kinds of records that are new to this program; undefined without any. */
  unknown(agent: string, version: string | undefined): UnknownKinds | undefined {
    return this.newKinds.size === 0
      ? undefined
      : { program: `${agent} ${version ?? ""}`.trimEnd(), kinds: [...this.newKinds] }
  }
}
