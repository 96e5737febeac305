/** Counts skipped records, by kind. */
export class Skipped {
  private readonly kinds = new Map<string, number>()
  /** Adds one of a kind. */
  add(kind: string): void {
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + 1)
  }
  /** Removes one of a kind, which was not skipped after all. */
  take(kind: string): void {
    const left = (this.kinds.get(kind) ?? 0) - 1
    if (left > 0) this.kinds.set(kind, left)
    else this.kinds.delete(kind)
  }
  /** The number of each kind, in order of first appearance. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.kinds)
  }
}
