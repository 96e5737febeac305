/** SHA-256 of bytes that come in pieces, computed at once, by the platform's own code where there is some. */

/** A SHA-256 that takes the bytes in pieces. */
export interface Digest {
  /** Takes the next bytes. */
  readonly update: (bytes: Uint8Array) => unknown
  /** The 32 bytes. Ends the digest. */
  readonly digest: () => Uint8Array
}

const blockBytes = 64
const words = 64

/** The first 32 bits of the fractional part of a root of each of the first primes. */
const fractions = (root: number, count: number): Int32Array => {
  const out = new Int32Array(count)
  for (let candidate = 2, found = 0; found < count; candidate += 1) {
    let isPrime = true
    for (let by = 2; by * by <= candidate && isPrime; by += 1) isPrime = candidate % by !== 0
    if (isPrime) out[found++] = (candidate ** (1 / root) % 1) * 0x1_0000_0000
  }
  return out
}

const at = (list: Int32Array, index: number): number => list[index] ?? 0
const rotated = (value: number, by: number): number => (value >>> by) | (value << (32 - by))

const constants = { initial: fractions(2, 8), round: fractions(3, words) }

/** Takes one block into the state. */
const compress = (state: Int32Array, schedule: Int32Array, block: DataView, offset: number) => {
  for (let i = 0; i < 16; i += 1) schedule[i] = block.getInt32(offset + i * 4)
  for (let i = 16; i < words; i += 1) {
    const [a, b] = [at(schedule, i - 15), at(schedule, i - 2)]
    const small = rotated(a, 7) ^ rotated(a, 18) ^ (a >>> 3)
    const large = rotated(b, 17) ^ rotated(b, 19) ^ (b >>> 10)
    schedule[i] = at(schedule, i - 16) + small + at(schedule, i - 7) + large
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let i = 0; i < words; i += 1) {
    const mixed = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
    const first = (h + mixed + ((e & f) ^ (~e & g)) + at(constants.round, i) + at(schedule, i)) | 0
    const second = ((rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
  }
  for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = at(state, i) + value
}

/** The digest in this language alone. */
export const portable = (): Digest => {
  const state = constants.initial.slice()
  const schedule = new Int32Array(words)
  const block = new Uint8Array(blockBytes)
  const view = new DataView(block.buffer)
  let length = 0
  const update = (bytes: Uint8Array) => {
    const whole = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let from = 0; from < bytes.length;) {
      const filled = length % blockBytes
      if (filled === 0 && bytes.length - from >= blockBytes) {
        compress(state, schedule, whole, from)
        from += blockBytes
        length += blockBytes
        continue
      }
      const piece = bytes.subarray(from, from + blockBytes - filled)
      block.set(piece, filled)
      from += piece.length
      length += piece.length
      if (length % blockBytes === 0) compress(state, schedule, view, 0)
    }
  }
  return {
    update,
    digest: () => {
      const bits = BigInt(length) * 8n
      const padding = new Uint8Array(((2 * blockBytes - 9 - (length % blockBytes)) % blockBytes) + 9)
      padding[0] = 0x80
      new DataView(padding.buffer).setBigUint64(padding.length - 8, bits)
      update(padding)
      const out = new Uint8Array(32)
      for (const [i, value] of state.entries()) new DataView(out.buffer).setInt32(i * 4, value)
      return out
    }
  }
}

const platform = () => globalThis.process?.getBuiltinModule?.("node:crypto")

/** Begins a digest. */
export const begin = (): Digest => platform()?.createHash("sha256") ?? portable()

/** The digest of these bytes. */
export const digestOf = (bytes: Uint8Array): Uint8Array => {
  const own = platform()
  if (own !== undefined) return own.hash("sha256", bytes, "buffer")
  const digest = portable()
  digest.update(bytes)
  return digest.digest()
}
