/** A persistent list that grows at its end, with its length and tokens in constant time. */

/**
 * A value, and the list before it. Appending creates one node and shares all earlier ones, and every earlier version stays
 * unchanged. `length` and `tokens` are sums up to and including the node, so reading totals costs nothing.
 */
export interface Node<A> {
  readonly value: A
  readonly before: PersistentList<A>
  readonly length: number
  readonly tokens: number
}
/** A list, represented by its last node; undefined is the empty list. */
export type PersistentList<A> = Node<A> | undefined

/** Returns the list with one more value, which has `tokens` tokens. The original list is unchanged. */
export const append = <A>(chain: PersistentList<A>, value: A, tokens: number): Node<A> => ({
  value,
  before: chain,
  length: length(chain) + 1,
  tokens: total(chain) + tokens
})

/** Returns the number of values, in constant time. */
export const length = <A>(chain: PersistentList<A>): number => chain?.length ?? 0

/** Returns the tokens of all values, in constant time. */
export const total = <A>(chain: PersistentList<A>): number => chain?.tokens ?? 0

const arrays = new WeakMap<object, ReadonlyArray<unknown>>()

/** Returns the values, oldest first. Walks the list once; later calls on the same version are free. */
export const toArray = <A>(chain: PersistentList<A>): ReadonlyArray<A> => {
  if (chain === undefined) return []
  const cached = arrays.get(chain)
  if (cached !== undefined) return cached as ReadonlyArray<A>
  const values = Array.from<A>({ length: chain.length })
  for (let node: PersistentList<A> = chain; node !== undefined; node = node.before) values[node.length - 1] = node.value
  arrays.set(chain, values)
  return values
}

/** Returns the values after the first `count`, oldest first. Walks only those. */
export const drop = <A>(chain: PersistentList<A>, count: number): ReadonlyArray<A> => {
  const values: Array<A> = []
  for (let node = chain; node !== undefined && node.length > count; node = node.before) values.push(node.value)
  return values.reverse()
}
