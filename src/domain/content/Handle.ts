import { Schema } from "effect"

/**
 * The short name of content that left the window: `h_` and ten base32 characters of the hash of its bytes. Short enough for a model to copy; longer
 * only if two different items of one session would share it.
 */
export const Handle = Schema.String.check(Schema.isPattern(/^h_[a-z2-7]{10,52}$/)).pipe(Schema.brand("Handle"))
export type Handle = typeof Handle.Type

/** SHA-256 in lower-case base32, 52 characters: the name of a blob. */
export const Hash = Schema.String.check(Schema.isPattern(/^[a-z2-7]{52}$/)).pipe(Schema.brand("Hash"))
export type Hash = typeof Hash.Type

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
const shortest = 10

/** Whether a value has the form of a handle. The handle need not name anything. */
export const isHandle = Schema.is(Handle)

/** The 32 bytes of a hash as base32. */
export const hashOf = (digest: Uint8Array): Hash => {
  let out = ""
  let bits = 0
  let value = 0
  for (const byte of digest) {
    value = ((value << 8) | byte) & 0xffff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      out += alphabet.charAt((value >> bits) & 31)
    }
  }
  if (bits > 0) out += alphabet.charAt((value << (5 - bits)) & 31)
  return Hash.make(out)
}

/** The shortest handle of `hash` that no other hash has. */
export const handleOf = (hash: Hash, heldByAnother: (handle: Handle) => boolean = () => false): Handle => {
  for (let length = shortest; length < hash.length; length += 1) {
    const handle = Handle.make(`h_${hash.slice(0, length)}`)
    if (!heldByAnother(handle)) return handle
  }
  return Handle.make(`h_${hash}`)
}

/** Whether `handle` may name the content with this hash. */
export const matches = (handle: Handle, hash: Hash): boolean => hash.startsWith(handle.slice(2))

const mention = /\bh_[a-z2-7]{10,52}\b/g

/**
 * The handles that a text mentions.
 *
 * **Example** (Finding the handles that a message shows)
 *
 * ```ts
 * import { Content } from "palimpsest"
 *
 * console.log(Content.mentions("the log is behind h_abcdefghij")) // => [ 'h_abcdefghij' ]
 * ```
 */
export const mentions = (text: string): Array<Handle> => (text.match(mention) ?? []).map((name) => Handle.make(name))
