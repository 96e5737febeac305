/** A map that holds entries up to a size, and drops those that were set longest ago. The newest one stays, whatever it weighs. */
export class BoundedMap<K, V> {
  private readonly held = new Map<K, V>()
  private readonly size: number
  private readonly weigh: (value: V) => number
  private weight = 0

  /** `size` is the number of entries, or the sum of what `weigh` returns for each. */
  constructor(size: number, weigh: (value: V) => number = () => 1) {
    this.size = size
    this.weigh = weigh
  }

  /** The value, if it is still held. */
  get(key: K): V | undefined {
    return this.held.get(key)
  }

  /** Sets a value, as the newest entry. */
  set(key: K, value: V): void {
    this.delete(key)
    this.held.set(key, value)
    this.weight += this.weigh(value)
    for (const oldest of this.held.keys()) {
      if (this.weight <= this.size || oldest === key) return
      this.delete(oldest)
    }
  }

  /** Removes an entry. */
  delete(key: K): void {
    const value = this.held.get(key)
    if (this.held.delete(key) && value !== undefined) this.weight -= this.weigh(value)
  }
}
