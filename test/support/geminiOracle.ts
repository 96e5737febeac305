import type { Content, Part } from "../../src/domain/content/Content.ts"

/**
 * A second implementation of Gemini CLI's compression, written only from its description, as simply as possible, in one piece and
 * without a line of `src`. `test/domain/compression/strategies/Gemini.test.ts` compares it with the strategy.
 */

export interface OracleInput {
  readonly curated: ReadonlyArray<Content>
  readonly environment: Content | undefined
  readonly original: number
  readonly limit: number
  readonly threshold: number | undefined
  readonly preserve: number
  readonly force: boolean
  readonly hasFailed: boolean
  readonly budget: number
  readonly toolOutputThreshold: number
  readonly lastLines: boolean
  readonly firstId: number
  /** Numbers of the saves that fail. */
  readonly broken: ReadonlyArray<number>
  readonly summary: string
  readonly verified: string
  /** The API's count, if it answers. */
  readonly api: number | undefined
  /** The failure flag before the compression. */
  readonly flag: boolean
  readonly instructions: {
    readonly system: string
    readonly create: string
    readonly merge: string
    readonly critique: string
  }
}

export interface OracleSave {
  readonly id: number
  readonly text: string
  readonly at: string
  readonly saved: boolean
}

export interface OracleResult {
  readonly status: string
  readonly before: number
  readonly after: number
  readonly hook: string
  readonly saves: ReadonlyArray<OracleSave>
  readonly slice: string
  readonly anchor: string
  readonly split: number
  readonly calls: ReadonlyArray<unknown>
  readonly summary: string
  readonly history: ReadonlyArray<Content> | null
  readonly apiAsked: boolean
  readonly flag: boolean
}

const tokensOfText = (s: string, b: number) => {
  if (s.length > 100000) return s.length / 4
  let n = 0
  for (let i = 0; i < s.length; i++) n += s.charCodeAt(i) < 128 ? 0.25 : b
  return n
}

const raw = (parts: ReadonlyArray<Part>, depth: number, b: number): number => {
  if (depth > 3) return 0
  let total = 0
  for (const p of parts) {
    if (typeof p.text === "string") {
      total += tokensOfText(p.text, b)
      continue
    }
    const fr = p.functionResponse
    if (fr) {
      let n = (fr.name ?? "").length / 4
      const r = fr.response
      if (typeof r === "string") n += r.length / 4
      else if (r !== undefined && r !== null) n += JSON.stringify(r).length / 4
      if (Array.isArray(fr.parts)) n += Math.floor(raw(fr.parts, depth + 1, b))
      total += n
      continue
    }
    const mime = p.inlineData ? p.inlineData.mimeType : p.fileData ? p.fileData.mimeType : undefined
    if (mime !== undefined && mime.startsWith("image/")) total += 3000
    else if (mime !== undefined && mime.startsWith("application/pdf")) total += 25800
    else total += JSON.stringify(p).length / 4
  }
  return total
}

/** The token estimate; `b` is the cost of a UTF-16 unit outside ASCII. */
export const oracleEstimate = (parts: ReadonlyArray<Part>, b = 1.3): number => Math.floor(raw(parts, 0, b))

const every = (contents: ReadonlyArray<Content>): Array<Part> => {
  const all: Array<Part> = []
  for (const c of contents) for (const p of c.parts) all.push(p)
  return all
}

/** The handle of every output. */
export const oracleHandle = "h_aaaaaaaaaa"
const lowHalf = (s: string) => /^[\uDC00-\uDFFF]/.test(s)
const highHalf = (s: string) => /[\uD800-\uDBFF]$/.test(s)
const mark = "[palimpsest: written by the runtime, not by the user]"

/** Cuts a text in two, leaving out a surrogate pair that the cut goes through. */
const cut = (s: string, at: number): [string, string] => {
  const a = s.slice(0, at)
  const z = s.slice(at)
  return highHalf(a) && lowHalf(z) ? [a.slice(0, -1), z.slice(1)] : [a, z]
}

/** Truncation of outputs; the words are ours, and so are two rules: no end of 0 characters, and nothing grows. */
export const oraclePlaceholder = (s: string, max: number, lastLines: boolean): string => {
  const short = oracleShort(s, max, lastLines)
  return short.length < s.length ? short : s
}

const oracleShort = (s: string, max: number, lastLines: boolean): string => {
  const whole = `The whole output: recall ${oracleHandle}`
  const lines = s.split("\n")
  if (!lastLines) {
    if (s.length <= max) return s
    if (max === 0) {
      return `${mark} An output of ${lines.length} line${lines.length === 1 ? "" : "s"}, ${s.length} characters, stood here. ${whole}`
    }
    const head = Math.floor(0.2 * max)
    const tail = max - head
    const shownHead = cut(s, head)[0]
    const shownTail = cut(s, s.length - tail)[1]
    const nothing = `${mark} An output of ${lines.length} line${lines.length === 1 ? "" : "s"}, ${s.length} characters, stood here. ${whole}`
    if (shownTail === "") return nothing
    const [a, z] = [shownHead.length, shownTail.length]
    const ends = a === 0 ? `last ${z}` : `first ${a} and last ${z}`
    return [
      `${mark} The ${ends} of ${s.length} characters. ${whole}`,
      shownHead,
      "",
      `... [${s.length - a - z} characters omitted] ...`,
      "",
      shownTail
    ].join("\n")
  }
  if (lines.length > 1) {
    const last = lines.filter((_, i) => i >= lines.length - 30)
    let wide = false
    const out: Array<string> = []
    for (const line of last) {
      if (line.length > 1000) {
        wide = true
        out.push(cut(line, 1000)[0] + "... [LINE WIDTH TRUNCATED]")
      } else out.push(line)
    }
    const width = wide ? ", each cut at 1000 characters" : ""
    return [`${mark} The last ${last.length} of ${lines.length} lines${width}. ${whole}`, "...", ...out].join("\n")
  }
  const end = s.length > 4000 ? cut(s, s.length - 4000)[1] : s
  return `${mark} The last ${end.length} of ${s.length} characters of one line. ${whole}\n...\n${end}`
}

/** The part of an output that is kept. */
const truncate = (input: OracleInput) => {
  const max = Math.max(0, Math.min(input.toolOutputThreshold, 4 * (input.limit - input.original)))
  const history = input.curated.map((c) => ({ ...c, parts: [...c.parts] }))
  const saves: Array<OracleSave> = []
  let counter = 0
  let id = input.firstId
  for (let c = history.length - 1; c >= 0; c--) {
    const parts = history[c]?.parts ?? []
    for (let p = parts.length - 1; p >= 0; p--) {
      const fr = parts[p]?.functionResponse
      if (!fr) continue
      const r = fr.response
      let s = ""
      if (typeof r === "string") s = r
      else if (r !== null && typeof r === "object" && "output" in r && typeof r.output === "string") s = r.output
      else if (r !== null && typeof r === "object" && "content" in r && typeof r.content === "string") s = r.content
      else if (r !== undefined) s = JSON.stringify(r, null, 2)
      const tokens = oracleEstimate([{ text: s }])
      if (counter + tokens > input.budget) {
        const saved = r !== undefined && !input.broken.includes(id)
        saves.push({ id, text: s, at: `${c}/${p}`, saved })
        id++
        if (saved) {
          const short = oraclePlaceholder(s, max, input.lastLines)
          parts[p] = { functionResponse: { ...fr, response: { output: short } } }
          counter += oracleEstimate([{ text: short }])
        } else counter += tokens
      } else counter += tokens
    }
  }
  return { history, saves }
}

/** The index where the history is split. */
export const oracleSplit = (contents: ReadonlyArray<Content>, fraction: number): number => {
  if (fraction <= 0 || fraction >= 1) throw new Error("Fraction must be between 0 and 1")
  if (contents.length === 0) return 0
  let total = 0
  for (const c of contents) total += JSON.stringify(c).length
  let cumulative = 0
  let lastSplit = 0
  for (let i = 0; i < contents.length; i++) {
    const c = contents[i]
    if (c === undefined) continue
    if (c.role === "user" && c.parts.filter((p) => p.functionResponse).length === 0) {
      if (cumulative >= fraction * total) return i
      lastSplit = i
    }
    cumulative += JSON.stringify(c).length
  }
  const last = contents[contents.length - 1]
  if (last !== undefined && last.role === "model" && last.parts.every((p) => !p.functionCall)) return contents.length
  return lastSplit
}

/** The failure flag after an outcome. */
export const oracleFlag = (flag: boolean, status: string, force: boolean): boolean => {
  if (status === "COMPRESSED") return false
  if (status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT") return flag || !force
  return flag
}

/** A whole compression, and the failure flag after it. */
export const oracle = (input: OracleInput): OracleResult => {
  const { curated, force, instructions, limit, original } = input
  const result: { -readonly [K in keyof OracleResult]: OracleResult[K] } = {
    status: "NOOP",
    before: original,
    after: original,
    hook: "",
    saves: [],
    slice: "",
    anchor: "",
    split: 0,
    calls: [],
    summary: "",
    history: null,
    apiAsked: false,
    flag: input.flag
  }
  const end = (status: string, after: number): OracleResult => {
    result.status = status
    result.after = after
    result.flag = oracleFlag(input.flag, status, force)
    return result
  }
  // 1
  if (curated.length === 0) {
    result.before = 0
    return end("NOOP", 0)
  }
  // 2
  result.hook = force ? "manual" : "auto"
  // 3
  if (!force) {
    const threshold = input.threshold === undefined || input.threshold === 0 ? 0.5 : input.threshold
    if (original < threshold * limit) return end("NOOP", original)
  }
  // 4
  const { history: truncated, saves } = truncate(input)
  result.saves = saves
  // 5, and the one deviation: the history must have shrunk
  if (input.hasFailed && !force) {
    const t = oracleEstimate(every(truncated))
    if (t < original && t < oracleEstimate(every(curated))) {
      result.history = truncated
      return end("CONTENT_TRUNCATED", t)
    }
    return end("NOOP", original)
  }
  // 6
  let split = 0
  try {
    split = oracleSplit(truncated, 1 - input.preserve)
  } catch {
    return end("THROWN", original)
  }
  if (truncated.slice(0, split).length === 0) return end("NOOP", original)
  const keep = truncated.slice(split)
  result.split = split
  // 7
  const originalSlice = curated.slice(0, split)
  result.slice = oracleEstimate(every(originalSlice)) < limit ? "original" : "truncated"
  const slice = result.slice === "original" ? originalSlice : truncated.slice(0, split)
  // 8
  let seen = false
  for (const p of every(slice)) if (p.text && p.text.indexOf("<state_snapshot>") !== -1) seen = true
  result.anchor = seen ? "merge" : "create"
  // 9, 10
  const ask = { role: "user", parts: [{ text: seen ? instructions.merge : instructions.create }] }
  const said = { role: "model", parts: [{ text: input.summary }] }
  const critique = { role: "user", parts: [{ text: instructions.critique }] }
  const call = (promptId: string, contents: ReadonlyArray<unknown>) => ({
    promptId,
    role: "utility_compressor",
    system: instructions.system,
    contents
  })
  result.calls = [call("p", [...slice, ask]), call("p-verify", [...slice, said, critique])]
  // 11
  const final = (input.verified.trim().length > 0 ? input.verified : input.summary).trim()
  // 12
  if (final.length === 0) return end("COMPRESSION_FAILED_EMPTY_SUMMARY", original)
  result.summary = final
  // 13
  const extra: Array<Content> = [
    { role: "user", parts: [{ text: final }] },
    { role: "model", parts: [{ text: "Got it. Thanks for the additional context!" }] },
    ...keep
  ]
  // 14
  const full = input.environment === undefined ? extra : [input.environment, ...extra]
  let count = oracleEstimate(every(full))
  for (const p of every(full)) if (p.inlineData || p.fileData) result.apiAsked = true
  if (result.apiAsked && input.api !== undefined) count = input.api
  // 16
  if (count > original) return end("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", count)
  result.history = extra
  return end("COMPRESSED", count)
}
