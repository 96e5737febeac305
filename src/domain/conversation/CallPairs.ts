/** Pairs tool calls with their responses. */

import { type Content, type FunctionCall, isCall, isResponse, type Part } from "../content/Content.ts"

/** The place of a part: index of the message, index of the part. */
export interface PartPlace {
  readonly item: number
  readonly part: number
}

const none = -1

/**
 * Pairs calls with responses, message by message. Ids decide. A response without a known id takes the first open call of the
 * same name that has no id, else none. A call is answered once, after it was made. When a later run of messages uses an id
 * or a name again, the call of that run is meant (ids like `call_0` start anew each turn). Mutable; adding a message takes a
 * time that does not depend on the earlier ones.
 */
export class CallPairs {
  /** By message: the number of its first part among all parts, and its run of messages of one role. */
  private readonly firsts: Array<number> = []
  private readonly runs: Array<number> = []
  /** By part: its message, and the number of the part that it is paired with. */
  private readonly items: Array<number> = []
  private readonly partners: Array<number> = []
  private readonly byId = new Map<string, Array<number>>()
  private readonly byName = new Map<string, Array<number>>()
  private run = 0
  private role: string | undefined

  private open(calls: Map<string, Array<number>>, key: string, call: number, item: number): void {
    const open = calls.get(key)
    const last = open?.[open.length - 1]
    if (open === undefined || last === undefined || this.runs[this.items[last] ?? item] !== this.run)
      calls.set(key, [call])
    else open.push(call)
  }

  /** Adds the next message. Returns the index of the earliest message with a call that it answers, or its own index. */
  add({ parts, role }: { readonly role: Content["role"]; readonly parts: ReadonlyArray<Part> }): number {
    const item = this.firsts.length
    let earliest = item
    if (parts.length > 0 && role !== this.role) {
      this.run += 1
      this.role = role
    }
    this.firsts.push(this.items.length)
    this.runs.push(this.run)
    for (const part of parts) {
      const own = this.items.length
      this.items.push(item)
      this.partners.push(none)
      if (isCall(part)) {
        if (part.functionCall.id === undefined) this.open(this.byName, part.functionCall.name, own, item)
        else this.open(this.byId, part.functionCall.id, own, item)
      } else if (isResponse(part)) {
        const { id, name } = part.functionResponse
        const open = (id === undefined ? undefined : this.byId.get(id)) ?? this.byName.get(name ?? "")
        const call = open?.shift()
        if (call === undefined) continue
        this.partners[call] = own
        this.partners[own] = call
        earliest = Math.min(earliest, this.items[call] ?? item)
      }
    }
    return earliest
  }

  /** Returns the message that holds the response of a call, or the call of a response. */
  partnerItem(item: number, part: number): number | undefined {
    const first = this.firsts[item]
    return first === undefined ? undefined : this.items[this.partners[first + part] ?? none]
  }

  /** Returns the place of the response of a call, or of the call of a response. */
  partnerOf(item: number, part: number): PartPlace | undefined {
    const other = this.partnerItem(item, part)
    return other === undefined
      ? undefined
      : { item: other, part: (this.partners[(this.firsts[item] ?? 0) + part] ?? 0) - (this.firsts[other] ?? 0) }
  }
}

/** Returns the pairs of all these messages. */
export const callPairs = (
  contents: Iterable<{ readonly role: Content["role"]; readonly parts: ReadonlyArray<Part> }>
): CallPairs => {
  const pairs = new CallPairs()
  for (const content of contents) pairs.add(content)
  return pairs
}

/** A call, and its response where it has one. */
export interface CallWithResponse {
  readonly call: FunctionCall
  readonly response: Part | undefined
}

/** Returns the calls of each message with their responses. */
export const callsWithResponses = (
  contents: ReadonlyArray<Content>
): ReadonlyArray<ReadonlyArray<CallWithResponse>> => {
  const pairs = callPairs(contents)
  return contents.map(({ parts }, item) =>
    parts.flatMap((part, at) => {
      if (!isCall(part)) return []
      const place = pairs.partnerOf(item, at)
      return [{ call: part.functionCall, response: place && contents[place.item]?.parts[place.part] }]
    })
  )
}
