/** The kind of a secret; shown in its place. */
export type Kind = string

/** A secret: characters `start` to `end` of the searched text. */
export interface Finding {
  readonly start: number
  readonly end: number
  readonly kind: Kind
}
