import type { AgentName } from "../../src/domain/transcripts/AgentFolders.ts"

/**
 * The same small session as the records of each agent, made by hand: what their files look like, whatever this program writes.
 * A session is a list of beats; beat number n happens n seconds after the first.
 */

/** Tokens of a request, as no agent names them. */
export interface Counts {
  readonly fresh: number
  readonly cached: number
  /** Written to a cache, where the agent counts it. */
  readonly written: number
  readonly output: number
}

/** One thing that happens in a session. */
export type Beat =
  | { readonly user: string }
  | {
      readonly answer: string
      readonly thought?: string
      /** Calls of a tool: its id, its name and its arguments. */
      readonly calls?: ReadonlyArray<readonly [id: string, name: string, args: object]>
      readonly counts?: Counts
      readonly model?: string
    }
  | { readonly result: string; readonly words: string; readonly failed?: boolean }
  | { readonly compacted: string }
  /** The user goes back to before the beat with this number, one of the user's. */
  | { readonly back: number }

type OtherAgent = Exclude<AgentName, "palimpsest">

/** How an agent records sessions. */
export interface AgentRecords {
  readonly records: (beats: ReadonlyArray<Beat>) => ReadonlyArray<object>
  /** Records that this program does not know. The word "hologram" names each; they follow the last record. */
  readonly odd: ReadonlyArray<(last: object | undefined) => object>
  /** The agent's own call of a shell, and of the tool that writes a file. */
  readonly shell: (command: string) => readonly [name: string, args: object]
  readonly write: (path: string) => readonly [name: string, args: object]
  /** How the program is named that wrote a record of a kind that nobody knows. */
  readonly program: RegExp
  /** Whether it counts the tokens written to a cache. */
  readonly countsWritten: boolean
  /** What a list knows of going back: some agents record only the new branch. */
  readonly tellsBack: boolean
}

export const session = "0199c7a0-1111-7222-8333-444455556666"
export const folder = "/home/ann/tides"
/** The time of a beat, in milliseconds since 1970. */
export const timeOf = (beat: number): number => 1_770_000_000_000 + beat * 1_000
const iso = (beat: number): string => new Date(timeOf(beat)).toISOString()
const defaultModel = "claude-sonnet-4-5"

const textOf = (record: object | undefined, key: string): string => {
  const value: unknown = record === undefined ? undefined : Reflect.get(record, key)
  return typeof value === "string" ? value : ""
}

const claude = (beats: ReadonlyArray<Beat>): ReadonlyArray<object> => {
  const all: Array<object> = []
  const before: Array<string | null> = []
  let parent: string | null = null
  const add = (n: number, type: string, rest: object): void => {
    const uuid = `00000000-0000-4000-8000-${String(all.length).padStart(12, "0")}`
    const about = { isSidechain: false, userType: "external", cwd: folder, sessionId: session, version: "2.1.39" }
    all.push({ parentUuid: parent, ...about, type, uuid, timestamp: iso(n), ...rest })
    parent = uuid
  }
  for (const [n, beat] of beats.entries()) {
    before.push(parent)
    if ("user" in beat) add(n, "user", { message: { role: "user", content: beat.user } })
    else if ("answer" in beat) {
      const { calls = [], counts: c, model = defaultModel, thought } = beat
      const usage =
        c === undefined
          ? {}
          : {
              usage: {
                input_tokens: c.fresh,
                cache_creation_input_tokens: c.written,
                cache_read_input_tokens: c.cached,
                output_tokens: c.output
              }
            }
      // One line a block, all with the id of the message and its counts.
      const blocks = [
        ...(thought === undefined ? [] : [{ type: "thinking", thinking: thought, signature: "sig" }]),
        { type: "text", text: beat.answer },
        ...calls.map(([id, name, input]) => ({ type: "tool_use", id, name, input }))
      ]
      for (const block of blocks)
        add(n, "assistant", { message: { id: `msg_${n}`, role: "assistant", model, content: [block], ...usage } })
    } else if ("result" in beat) {
      const block = {
        type: "tool_result",
        tool_use_id: beat.result,
        content: beat.words,
        is_error: beat.failed === true
      }
      add(n, "user", { message: { role: "user", content: [block] } })
    } else if ("compacted" in beat) {
      const logicalParentUuid = parent
      parent = null
      const compactMetadata = { trigger: "manual", preTokens: 9_000 }
      add(n, "system", { subtype: "compact_boundary", content: "Compacted", logicalParentUuid, compactMetadata })
      add(n, "user", { message: { role: "user", content: beat.compacted }, isCompactSummary: true })
    } else parent = before[beat.back] ?? null
  }
  return all
}

const codex = (beats: ReadonlyArray<Beat>): ReadonlyArray<object> => {
  const all: Array<object> = []
  const add = (n: number, type: string, payload: object) => all.push({ timestamp: iso(n), type, payload })
  const item = (n: number, role: string, type: string, text: string) =>
    add(n, "response_item", { type: "message", role, content: [{ type, text }] })
  add(0, "session_meta", { id: session, timestamp: iso(0), cwd: folder, originator: "codex_cli_rs", source: "cli" })
  let model = ""
  let total = 0
  for (const [n, beat] of beats.entries()) {
    if ("user" in beat) item(n, "user", "input_text", beat.user)
    else if ("answer" in beat) {
      const { calls = [], counts: c, thought } = beat
      const own = beat.model ?? defaultModel
      if (own !== model) add(n, "turn_context", { cwd: folder, model: own, effort: "high" })
      model = own
      if (thought !== undefined) {
        const summary = [{ type: "summary_text", text: thought }]
        add(n, "response_item", { type: "reasoning", summary, encrypted_content: "sig" })
      }
      item(n, "assistant", "output_text", beat.answer)
      for (const [id, name, args] of calls)
        add(n, "response_item", { type: "function_call", name, arguments: JSON.stringify(args), call_id: id })
      if (c !== undefined) {
        total += c.fresh + c.cached + c.output
        const last = {
          input_tokens: c.fresh + c.cached,
          cached_input_tokens: c.cached,
          output_tokens: c.output,
          reasoning_output_tokens: 1,
          total_tokens: c.fresh + c.cached + c.output
        }
        const info = { total_token_usage: { ...last, total_tokens: total }, last_token_usage: last }
        add(n, "event_msg", { type: "token_count", info, rate_limits: null })
        // The same counts again only report rate limits.
        add(n, "event_msg", { type: "token_count", info, rate_limits: { primary: { used_percent: 1 } } })
      }
    } else if ("result" in beat) {
      const output = beat.failed === true ? { content: beat.words, success: false } : beat.words
      add(n, "response_item", { type: "function_call_output", call_id: beat.result, output })
    } else if ("compacted" in beat) {
      const content = [{ type: "input_text", text: beat.compacted }]
      const replacement_history = [{ type: "message", role: "user", content }]
      add(n, "compacted", { message: beat.compacted, replacement_history })
    } else {
      const num_turns = beats.slice(beat.back, n).filter((one) => "user" in one).length
      add(n, "event_msg", { type: "thread_rolled_back", num_turns })
    }
  }
  return all
}

const gemini = (beats: ReadonlyArray<Beat>): ReadonlyArray<object> => {
  const all: Array<object> = [
    { sessionId: session, projectHash: "p", startTime: iso(0), cwd: folder, directories: [folder] }
  ]
  const open = new Map<string, Array<object>>()
  for (const [n, beat] of beats.entries()) {
    const about = { id: `m${n}`, timestamp: iso(n) }
    if ("user" in beat) all.push({ ...about, type: "user", content: [{ text: beat.user }] })
    else if ("answer" in beat) {
      const { calls = [], counts: c, model = defaultModel, thought } = beat
      const tokens = c && { input: c.fresh + c.cached, output: c.output - 1, cached: c.cached, thoughts: 1, tool: 0 }
      const toolCalls = calls.map(([id, name, args]) => {
        const result: Array<object> = []
        open.set(id, result)
        return { id, name, args, result, status: "success", timestamp: iso(n) }
      })
      const thoughts = thought === undefined ? [] : [{ subject: "", description: thought, timestamp: iso(n) }]
      all.push({ ...about, type: "gemini", content: beat.answer, thoughts, tokens, model, toolCalls })
    } else if ("result" in beat) {
      const response = beat.failed === true ? { error: beat.words } : { output: beat.words }
      const name = beats
        .flatMap((one) => ("answer" in one ? (one.calls ?? []) : []))
        .find(([id]) => id === beat.result)?.[1]
      open.get(beat.result)?.push({ functionResponse: { id: beat.result, name, response } })
    } else if ("compacted" in beat) {
      const content = [{ text: `<state_snapshot>${beat.compacted}</state_snapshot>` }]
      const thanks = "Got it. Thanks for the additional context!"
      const messages = [
        { ...about, type: "user", content },
        { ...about, id: `m${n}a`, type: "gemini", content: [{ text: thanks }] }
      ]
      all.push({ $set: { messages, lastUpdated: iso(n) } })
    } else all.push({ $rewindTo: `m${beat.back}` })
  }
  return all
}

const pi = (beats: ReadonlyArray<Beat>): ReadonlyArray<object> => {
  const all: Array<object> = [{ type: "session", version: 3, id: session, timestamp: iso(0), cwd: folder }]
  const before: Array<string | null> = []
  let parentId: string | null = null
  const add = (n: number, type: string, rest: object): void => {
    const id = String(all.length).padStart(8, "0")
    all.push({ type, id, parentId, timestamp: iso(n), ...rest })
    parentId = id
  }
  for (const [n, beat] of beats.entries()) {
    before.push(parentId)
    const timestamp = timeOf(n)
    if ("user" in beat) {
      const content = [{ type: "text", text: beat.user }]
      add(n, "message", { message: { role: "user", content, timestamp } })
    } else if ("answer" in beat) {
      const { calls = [], counts: c, model = defaultModel, thought } = beat
      const content = [
        ...(thought === undefined ? [] : [{ type: "thinking", thinking: thought, thinkingSignature: "sig" }]),
        { type: "text", text: beat.answer },
        ...calls.map(([id, name, args]) => ({ type: "toolCall", id, name, arguments: args }))
      ]
      const usage = c && { input: c.fresh, output: c.output, cacheRead: c.cached, cacheWrite: c.written }
      add(n, "message", { message: { role: "assistant", content, model, usage, timestamp } })
    } else if ("result" in beat) {
      const content = [{ type: "text", text: beat.words }]
      const about = { role: "toolResult", toolCallId: beat.result, isError: beat.failed === true, timestamp }
      const name = beats
        .flatMap((one) => ("answer" in one ? (one.calls ?? []) : []))
        .find(([id]) => id === beat.result)?.[1]
      add(n, "message", { message: { ...about, toolName: name, content } })
    } else if ("compacted" in beat) {
      add(n, "compaction", { summary: beat.compacted, firstKeptEntryId: "none", tokensBefore: 9_000 })
    } else parentId = before[beat.back] ?? null
  }
  return all
}

const opencode = (beats: ReadonlyArray<Beat>): ReadonlyArray<object> => {
  const back = beats.find((beat) => "back" in beat)
  const revert =
    back === undefined ? {} : { revert: JSON.stringify({ messageID: `msg_${String(back.back).padStart(4, "0")}` }) }
  const all: Array<object> = [{ kind: "session", id: session, directory: folder, title: "", ...revert }]
  const states = new Map<string, { readonly part: number; readonly state: object }>()
  const part = (message: string, data: object) =>
    all.push({ kind: "part", id: `prt_${all.length}`, message_id: message, data })
  const say = (n: number, data: object, id = `msg_${String(n).padStart(4, "0")}`) => {
    all.push({ kind: "message", id, time_created: timeOf(n), data })
    return id
  }
  for (const [n, beat] of beats.entries()) {
    if ("user" in beat) part(say(n, { role: "user" }), { type: "text", text: beat.user })
    else if ("answer" in beat) {
      const { calls = [], counts: c, model = defaultModel, thought } = beat
      const cache = c && { read: c.cached, write: c.written }
      const tokens = c && { input: c.fresh, output: c.output - 1, reasoning: 1, cache }
      const id = say(n, { role: "assistant", modelID: model, tokens, finish: "stop" })
      if (thought !== undefined) part(id, { type: "reasoning", text: thought })
      part(id, { type: "text", text: beat.answer })
      for (const [callID, tool, input] of calls) {
        states.set(callID, { part: all.length, state: { callID, tool, input } })
        part(id, { type: "tool", callID, tool, state: { status: "running", input } })
      }
    } else if ("result" in beat) {
      const { part: at, state } = states.get(beat.result) ?? { part: -1, state: {} }
      const ended =
        beat.failed === true ? { status: "error", error: beat.words } : { status: "completed", output: beat.words }
      const data = {
        type: "tool",
        callID: beat.result,
        tool: textOf(state, "tool"),
        state: { ...ended, input: Reflect.get(state, "input") }
      }
      all[at] = { ...all[at], data }
    } else if ("compacted" in beat) {
      const id = say(n, { role: "user" })
      part(id, { type: "compaction", auto: false })
      const summary = say(n, { role: "assistant", parentID: id, summary: true, finish: "stop" }, `${id}b`)
      part(summary, { type: "text", text: beat.compacted })
    }
  }
  return all
}

/** How each agent records a session. */
export const agentRecords: Readonly<Record<OtherAgent, AgentRecords>> = {
  claude: {
    records: claude,
    program: /^Claude Code 2\.1\.39$/,
    odd: [
      (last) => ({ type: "hologram", uuid: "h", parentUuid: textOf(last, "uuid"), sessionId: session }),
      (last) => ({
        type: "system",
        subtype: "hologram",
        uuid: "h",
        parentUuid: textOf(last, "uuid"),
        sessionId: session
      }),
      () => ({ type: "hologram", sessionId: session })
    ],
    shell: (command) => ["Bash", { command }],
    write: (file_path) => ["Write", { file_path, content: "x" }],
    countsWritten: true,
    tellsBack: true
  },
  codex: {
    records: codex,
    program: /^Codex/,
    odd: [
      () => ({ timestamp: iso(99), type: "response_item", payload: { type: "hologram" } }),
      () => ({ timestamp: iso(99), type: "event_msg", payload: { type: "hologram" } }),
      () => ({
        timestamp: iso(99),
        type: "response_item",
        payload: { type: "message", role: "hologram", content: [] }
      }),
      () => ({ timestamp: iso(99), type: "hologram", payload: null }),
      () => ({ type: "hologram" }),
      () => ({ record_type: "hologram" })
    ],
    shell: (cmd) => ["exec_command", { cmd }],
    write: (path) => ["apply_patch", { input: `*** Begin Patch\n*** Add File: ${path}\n+x\n*** End Patch` }],
    countsWritten: false,
    tellsBack: true
  },
  gemini: {
    records: gemini,
    program: /^Gemini CLI/,
    odd: [() => ({ id: "h", timestamp: iso(99), type: "hologram", content: "x" }), () => ({ type: "hologram" })],
    shell: (command) => ["run_shell_command", { command }],
    write: (file_path) => ["write_file", { file_path, content: "x" }],
    countsWritten: false,
    tellsBack: true
  },
  pi: {
    records: pi,
    program: /^Pi/,
    odd: [
      (last) => ({ type: "hologram", id: "h", parentId: textOf(last, "id"), timestamp: iso(99) }),
      (last) => ({
        type: "message",
        id: "h",
        parentId: textOf(last, "id"),
        timestamp: iso(99),
        message: { role: "hologram", content: [] }
      })
    ],
    shell: (command) => ["bash", { command }],
    write: (path) => ["write", { path, content: "x" }],
    countsWritten: true,
    tellsBack: false
  },
  opencode: {
    records: opencode,
    program: /^opencode/,
    odd: [
      () => ({ kind: "hologram", id: "h" }),
      () => ({ kind: "message", id: "msg_9999", time_created: timeOf(99), data: { role: "hologram" } }),
      () => ({ kind: "part", id: "h", message_id: "msg_0000", data: { type: "hologram" } })
    ],
    shell: (command) => ["bash", { command }],
    write: (filePath) => ["write", { filePath, content: "x" }],
    countsWritten: true,
    tellsBack: false
  }
}
