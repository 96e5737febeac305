/** A call that waits for its response. */
export interface OpenCall {
  readonly part: number
  readonly run: number
  readonly name: string
  /** The files that the call reads. */
  readonly paths: ReadonlyArray<string>
}

const noCalls: Array<OpenCall> = []

/** Pairs calls with their responses as `CallPairs` does, but forgets answered calls. Mutable. */
export class OpenCalls {
  private readonly byId = new Map<string, Array<OpenCall>>()
  private readonly byName = new Map<string, Array<OpenCall>>()
  private role: string | undefined
  run = 0

  /** Begins the next message. */
  begin(role: string, isEmpty: boolean): void {
    if (isEmpty || role === this.role) return
    this.run += 1
    this.role = role
  }

  /** Adds a call that waits for its response. */
  open(id: string | undefined, call: OpenCall): void {
    const calls = id === undefined ? this.byName : this.byId
    const key = id ?? call.name
    const open = calls.get(key)
    const last = open?.at(-1)
    if (open === undefined || last === undefined || last.run !== this.run) calls.set(key, [call])
    else open.push(call)
  }

  /** Takes the call that a response answers, by id or else by name; undefined when there is none. */
  answered(id: string | undefined, name: string | undefined): OpenCall | undefined {
    const ofId = id === undefined ? undefined : this.byId.get(id)
    const calls = ofId ?? this.byName.get(name ?? "")
    const call = calls?.shift()
    if (calls?.length === 0 && id !== undefined && ofId !== undefined) this.byId.set(id, noCalls)
    return call
  }
}
