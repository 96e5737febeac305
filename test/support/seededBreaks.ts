import { type Random, seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"

/** Session files that are broken in seeded ways, one to three at once, in the formats that `rescue` writes. */

/** A format with files, one record a line. */
export type FileFormat = "claude" | "codex" | "gemini" | "pi"
export const fileFormats: ReadonlyArray<FileFormat> = ["claude", "codex", "gemini", "pi"]

/** How large the large things are. */
export interface Sizes {
  /** Base64 characters of an image. */
  readonly image: number
  /** Records of a session that is too long. */
  readonly records: number
}

type Lines = ReadonlyArray<string>
type Json = Record<string, unknown>

const recordOf = (line: string): Json => {
  const value: unknown = JSON.parse(line)
  return typeof value === "object" && value !== null ? { ...value } : {}
}

const time = (at: number): string => new Date(1_780_000_000_000 + at * 1_000).toISOString()

/** A record in which someone says a text, or the user shows an image, after the record before it. */
const saidRecord = (
  format: FileFormat,
  role: "user" | "assistant",
  before: string,
  text: string,
  image: string | undefined,
  at: number
): string => {
  const last = recordOf(before)
  const id = `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`
  const mime = "image/png"
  const isUser = role === "user"
  switch (format) {
    case "claude": {
      const source = { type: "base64", media_type: mime, data: image }
      const content = image === undefined ? [{ type: "text", text }] : [{ type: "image", source }]
      const { cwd, sessionId, uuid, version } = last
      const about = { cwd, sessionId, version, isSidechain: false, userType: "external" }
      const message = isUser ? { role, content } : { id: `msg_${at}`, role, model: "claude-sonnet-4-5", content }
      return JSON.stringify({ ...about, type: role, uuid: id, parentUuid: uuid ?? null, timestamp: time(at), message })
    }
    case "codex": {
      const part =
        image === undefined
          ? { type: isUser ? "input_text" : "output_text", text }
          : { type: "input_image", image_url: `data:${mime};base64,${image}` }
      const payload = { type: "message", role, content: [part] }
      return JSON.stringify({ timestamp: time(at), type: "response_item", payload })
    }
    case "gemini": {
      const part = image === undefined ? { text } : { inlineData: { mimeType: mime, data: image } }
      return JSON.stringify({ id, timestamp: time(at), type: isUser ? "user" : "gemini", content: [part] })
    }
    case "pi": {
      const part = image === undefined ? { type: "text", text } : { type: "image", data: image, mimeType: mime }
      return JSON.stringify({
        type: "message",
        id: `u${at}`,
        parentId: last["id"] ?? null,
        timestamp: time(at),
        message: { role, content: [part], timestamp: at }
      })
    }
  }
}

/** The last record with an id, to which the next one is joined. */
const lastNamed = (lines: Lines): string =>
  lines.findLast((line) => /"(?:uu)?id":"/.test(line.slice(0, 2_000))) ?? lines.at(-1) ?? "{}"

const added = (
  format: FileFormat,
  lines: Lines,
  count: number,
  text: (index: number) => string,
  image?: string
): Lines => {
  const all = [...lines]
  let before = lastNamed(lines)
  for (let index = 0; index < count; index += 1) {
    const role = image === undefined && index % 2 === 1 ? "assistant" : "user"
    before = saidRecord(format, role, before, text(index), image, index)
    all.push(before)
  }
  return all
}

const parentKey = { claude: "parentUuid", pi: "parentId", codex: undefined, gemini: undefined } as const
const idKey = { claude: "uuid", pi: "id", codex: undefined, gemini: "id" } as const

const isResult = (line: string): boolean =>
  /"tool_result"|"function_call_output"|"custom_tool_call_output"|"functionResponse"|"toolResult"/.test(line)
const isCall = (line: string): boolean =>
  /"tool_use"|"type":"function_call"|"custom_tool_call"|"functionCall"|"type":"toolCall"/.test(line)

type Break = (lines: Lines, random: Random, format: FileFormat, sizes: Sizes) => Lines | string

/** The first line says what the file is, and no session goes without it. */
const some = (random: Random, share: number) => (_: string, index: number) => index > 0 && random() < share

/** The ways, by name. A text is the whole file; nothing can be broken after it. */
const ways: Readonly<Record<string, Break>> = {
  "lines twice": (lines, random) => {
    const isTwice = some(random, 0.2)
    return lines.flatMap((line, index) => (isTwice(line, index) ? [line, line] : [line]))
  },
  "lines cut": (lines, random) => {
    const isCut = some(random, 0.1)
    return lines.map((line, index) => (isCut(line, index) ? line.slice(0, Math.floor(line.length * random())) : line))
  },
  "records missing": (lines, random) => {
    const isMissing = some(random, 0.15)
    return lines.filter((line, index) => !isMissing(line, index))
  },
  "results without calls": (lines, random) =>
    lines.filter((line, index) => !(index > 0 && isCall(line) && random() < 0.4)),
  "calls without results": (lines, random) =>
    lines.filter((line, index) => !(index > 0 && isResult(line) && random() < 0.4)),
  "a cycle of parents": (lines, random, format) => {
    const parent = parentKey[format]
    const id = idKey[format]
    if (parent === undefined || id === undefined) return [...lines, ...lines.slice(-2)]
    const at = 1 + Math.floor(random() * (lines.length - 2))
    const target = recordOf(lines[Math.min(lines.length - 1, at + Math.floor(random() * 3))] ?? "{}")
    return lines.map((line, index) =>
      index === at ? JSON.stringify({ ...recordOf(line), [parent]: target[id] }) : line
    )
  },
  "zeros in the middle": (lines, random) => {
    const at = 1 + Math.floor(random() * (lines.length - 1))
    return lines.map((line, index) => (index === at ? `${line.slice(0, line.length / 2)}${"\0".repeat(512)}` : line))
  },
  "large images": (lines, _, format, { image }) => added(format, lines, 2, () => "", "A".repeat(image)),
  "many records": (lines, _, format, { records }) =>
    added(format, lines, Math.max(0, records - lines.length), (index) => `Message ${index} of ${records}`),
  truncated: (lines, random) => {
    const text = lines.join("\n")
    return text.slice(0, Math.floor(text.length * (0.4 + random() * 0.6)))
  }
}

const names = Object.keys(ways)

/** A broken session. */
export interface BrokenSession {
  readonly name: string
  readonly format: FileFormat
  readonly ways: ReadonlyArray<string>
  readonly text: string
}

/** Breaks a session of each format by a seed: every way comes with every format. */
export const brokenSession = (
  seed: number,
  sessions: Readonly<Record<FileFormat, Lines>>,
  sizes: Sizes
): BrokenSession => {
  const random = seededRandom(seed + 0x9e3779b9)
  const format = fileFormats[seed % fileFormats.length] ?? "claude"
  const first = names[Math.floor(seed / fileFormats.length) % names.length] ?? "lines twice"
  const others = names.filter((name) => name !== first && random() < 0.15).slice(0, 2)
  // What ends the file comes last, what parses its records first.
  const chosen = names.filter((name) => name === first || others.includes(name))
  const order = ["a cycle of parents", "large images", "many records"]
  const sorted = [...order.filter((name) => chosen.includes(name)), ...chosen.filter((name) => !order.includes(name))]
  let broken: Lines | string = sessions[format]
  for (const name of sorted) {
    if (typeof broken !== "string") broken = ways[name]?.(broken, random, format, sizes) ?? broken
  }
  return {
    name: `${seed}: ${format}, ${sorted.join(" and ")}`,
    format,
    ways: sorted,
    text: typeof broken === "string" ? broken : `${broken.join("\n")}\n`
  }
}

/** The texts of the user in the whole lines of a broken session, without those that a note says a program put there. */
export const userTexts = ({ format, text }: BrokenSession): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    try {
      return saidIn(format, recordOf(line)).filter((said) => said.trim() !== "" && !said.startsWith("[palimpsest: "))
    } catch {
      return []
    }
  })

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const textsIn = (content: unknown): ReadonlyArray<string> =>
  typeof content === "string"
    ? [content]
    : Array.isArray(content)
      ? content.flatMap((part) => (isJson(part) && typeof part["text"] === "string" ? [part["text"]] : []))
      : []

const saidIn = (format: FileFormat, record: Json): ReadonlyArray<string> => {
  const { content, isMeta, message, payload, type } = record
  switch (format) {
    case "claude":
      return type === "user" && isMeta !== true && isJson(message) ? textsIn(message["content"]) : []
    case "codex":
      return isJson(payload) && payload["type"] === "message" && payload["role"] === "user"
        ? textsIn(payload["content"])
        : []
    case "gemini":
      return type === "user" ? textsIn(content) : []
    case "pi":
      return isJson(message) && message["role"] === "user" ? textsIn(message["content"]) : []
  }
}
