/** Lists that store millions of numbers or names in little memory. */

type Numbers = Float64Array | Uint32Array | Uint8Array

/** A list of numbers that takes only as much memory as their bytes. Mutable. */
class Column {
  size = 0
  private readonly make: (size: number) => Numbers
  private held: Numbers
  constructor(make: (size: number) => Numbers) {
    this.make = make
    this.held = make(1_024)
  }
  /** Appends a number. */
  push(value: number): void {
    if (this.size === this.held.length) {
      const larger = this.make(this.size * 2)
      larger.set(this.held)
      this.held = larger
    }
    this.held[this.size] = value
    this.size += 1
  }
  /** Returns the number at an index; 0 beyond the end. */
  at(index: number): number {
    return this.held[index] ?? 0
  }
  /** Replaces the number at an index. */
  set(index: number, value: number): void {
    this.held[index] = value
  }
}

/** Makes a column of numbers. */
export const wideColumn = () => new Column((size) => new Float64Array(size))
/** Makes a column of whole numbers below 2^32. */
export const narrowColumn = () => new Column((size) => new Uint32Array(size))
/** Makes a column of whole numbers below 256. */
export const tinyColumn = () => new Column((size) => new Uint8Array(size))

/** Numbers texts, each once. Mutable. */
export class Names {
  /** The texts, by number. */
  readonly list: Array<string> = []
  private readonly numbers = new Map<string, number>()
  /** Returns the number of a text, and assigns one to a new text. */
  of(name: string): number {
    const number = this.numbers.get(name)
    if (number !== undefined) return number
    this.numbers.set(name, this.list.length)
    this.list.push(name)
    return this.list.length - 1
  }
}
