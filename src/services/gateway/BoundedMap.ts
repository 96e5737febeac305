/** A map that forgets what was added first. */
export class BoundedMap<V> {
  private readonly held = new Map<string, V>()
  private readonly size: number
  constructor(size: number) {
    this.size = size
  }
  /** The value under a key. */
  get(key: string): V | undefined {
    return this.held.get(key)
  }
  /** Forgets a key. */
  delete(key: string): void {
    this.held.delete(key)
  }
  /** Keeps a value, as the newest. */
  set(key: string, value: V): void {
    this.held.delete(key)
    this.held.set(key, value)
    if (this.held.size <= this.size) return
    for (const first of this.held.keys()) {
      this.held.delete(first)
      return
    }
  }
}
