/** What a search for secrets finds: a place in a text, and the kind of the secret there. */

/** The kind of a secret; shown in its place. */
export type Kind = string

/** A secret: characters `start` to `end` of the searched text. */
export interface Finding {
  readonly start: number
  readonly end: number
  readonly kind: Kind
}
