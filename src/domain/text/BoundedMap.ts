/** A map that holds a number of entries and drops the one that was set longest ago. */
export class BoundedMap<K, V> {
  private readonly held = new Map<K, V>()
  private readonly size: number

  constructor(size: number) {
    this.size = Math.max(1, size)
  }

  /** The value, if it is still held. */
  get(key: K): V | undefined {
    return this.held.get(key)
  }

  /** Sets a value, as the newest entry. */
  set(key: K, value: V): void {
    this.held.delete(key)
    this.held.set(key, value)
    if (this.held.size <= this.size) return
    for (const oldest of this.held.keys()) {
      this.held.delete(oldest)
      return
    }
  }

  /** Removes an entry. */
  delete(key: K): void {
    this.held.delete(key)
  }
}
