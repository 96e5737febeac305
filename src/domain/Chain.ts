/**
 * A list that grows at its end and shares everything before it: appending makes one node, every earlier version stays
 * what it was. `length` and `tokens` are sums up to and including the node, so totals cost nothing to read.
 */
export interface Node<A> {
  readonly value: A
  readonly before: Chain<A>
  readonly length: number
  readonly tokens: number
}
/** The last node of a list; undefined for the empty one. */
export type Chain<A> = Node<A> | undefined

/** The list with one value more, which weighs `tokens`. The list itself stays what it was. */
export const append = <A>(chain: Chain<A>, value: A, tokens: number): Node<A> => ({
  value,
  before: chain,
  length: length(chain) + 1,
  tokens: total(chain) + tokens
})

/** How many values there are, in no time. */
export const length = <A>(chain: Chain<A>): number => chain?.length ?? 0

/** Tokens of all values. */
export const total = <A>(chain: Chain<A>): number => chain?.tokens ?? 0

const arrays = new WeakMap<object, ReadonlyArray<unknown>>()

/** The values, oldest first. Walks the chain once; later calls on the same version are free. */
export const toArray = <A>(chain: Chain<A>): ReadonlyArray<A> => {
  if (chain === undefined) return []
  const known = arrays.get(chain)
  if (known !== undefined) return known as ReadonlyArray<A>
  const values = Array.from<A>({ length: chain.length })
  for (let node: Chain<A> = chain; node !== undefined; node = node.before) values[node.length - 1] = node.value
  arrays.set(chain, values)
  return values
}

/** The values after the first `count`, oldest first; walks only those. */
export const drop = <A>(chain: Chain<A>, count: number): ReadonlyArray<A> => {
  const values: Array<A> = []
  for (let node = chain; node !== undefined && node.length > count; node = node.before) values.push(node.value)
  return values.reverse()
}
