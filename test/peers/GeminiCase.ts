import type { Content, Part } from "../../src/domain/content/Content.ts"
import { type Random, seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"

/** A conversation to be compressed, and what the model and the API say to it. JSON, so that another process can read it. */
export interface GeminiCase {
  /** Without the environment message. */
  readonly contents: ReadonlyArray<Content>
  /** Whether the environment message stands before them. */
  readonly environment: boolean
  readonly model: string
  readonly promptTokens: number
  readonly threshold?: number
  readonly force: boolean
  readonly hasFailed: boolean
  /** Of both calls: the parts of the answer, an answer without a candidate, or a failure. */
  readonly answers: readonly [Answer, Answer]
  /** What countTokens says, where it is asked. */
  readonly count: number | "fail"
  /** Numbers of the outputs that cannot be saved. */
  readonly brokenSaves: ReadonlyArray<number>
}

export type Answer = ReadonlyArray<Part> | "nothing" | "fail"

/** What the original made of a case. */
export interface OriginalRun {
  /** Its status, or THROWN. */
  readonly status: string
  readonly message?: string
  readonly before: number
  readonly after: number
  readonly history: ReadonlyArray<Content> | null
  readonly calls: ReadonlyArray<{
    readonly contents: ReadonlyArray<Content>
    readonly promptId: string
    readonly role: string
    readonly alias: string
  }>
  readonly environment: Content
  readonly curated: ReadonlyArray<Content>
  readonly limit: number
  /** What it calls the model that writes the summary. */
  readonly alias: string
  /** The trigger that hooks were told. */
  readonly hook: string | undefined
  /** How often countTokens was asked. */
  readonly counted: number
  /** How many outputs it saved or tried to. */
  readonly saves: number
}

// --- generating -----------------------------------------------------------------------------------------------------

const snapshot = "<state_snapshot>\n  <overall_goal>Find the fault.</overall_goal>\n</state_snapshot>"
const acknowledgement = "Got it. Thanks for the additional context!"
const words = [
  "the test fails",
  "src/a.ts",
  "why",
  "port 8080",
  "你好世界",
  "naïve",
  "🙂",
  "line\nbreak",
  '"quoted"',
  "é"
]

const generator = (random: Random) => {
  const below = (most: number): number => Math.floor(random() * most)
  const chance = (share: number): boolean => random() < share
  const pick = <A>(first: A, ...rest: ReadonlyArray<A>): A => [first, ...rest][below(rest.length + 1)] ?? first

  const prose = (most: number): string =>
    Array.from({ length: 1 + below(most) }, () => pick("word", ...words)).join(pick(" ", "\n", ", "))

  const size = (): number => {
    const kind = random()
    if (kind < 0.75) return below(2_000)
    if (kind < 0.85) return below(30_000)
    if (kind < 0.92) return pick(40_000, 40_001, 39_999, 99_999, 100_000, 100_001)
    return 40_000 + below(120_000)
  }

  const output = (): string => {
    const line = pick("0123456789abcdef\n", "const a = 1\n", "no break at all ", "行の内容\n", `${prose(6)}\n`)
    const length = size()
    return line.repeat(Math.ceil(length / line.length)).slice(0, length)
  }

  const media = (): Part =>
    pick<Part>(
      { inlineData: { mimeType: "image/png", data: "aGk=".repeat(below(20)) } },
      { inlineData: { mimeType: "application/pdf", data: "aGk=" } },
      { inlineData: { mimeType: "audio/mpeg", data: "aGk=".repeat(below(2_000)) } },
      { fileData: { mimeType: "video/mp4", fileUri: "https://example.com/v" } },
      { fileData: { fileUri: "https://example.com/unknown" } }
    )

  const answered = (): Record<string, unknown> => {
    const kind = random()
    if (kind < 0.45) return { response: { output: output() } }
    if (kind < 0.55) return { response: { content: output() } }
    if (kind < 0.65) return { response: { error: output() } }
    if (kind < 0.75) return { response: { lines: output().split("\n").slice(0, 3_000), total: below(9) } }
    if (kind < 0.8) return { response: { output: { nested: output() } } }
    if (kind < 0.85) return { response: output() }
    if (kind < 0.88) return { response: [output()] }
    if (kind < 0.9) return { response: null }
    if (kind < 0.92) return {}
    if (kind < 0.96) return { response: { output: output(), content: "beside" } }
    return { response: { output: "see below" }, parts: [media(), { text: prose(7) }, { functionCall: { name: "f" } }] }
  }

  const userText = (): string => {
    const kind = random()
    if (kind < 0.06) return `${snapshot} is what I was given`
    if (kind < 0.1) return `  <state_snapshot> of what?`
    if (kind < 0.15) return `what does <state_snapshot> mean?`
    if (kind < 0.17) return ""
    return prose(chance(0.1) ? 4_000 : 40)
  }

  let ids = 0
  const round = (): ReadonlyArray<Content> => {
    const calls = Array.from({ length: pick(1, 1, 1, 2, 3) }, () => {
      ids += 1
      const name = pick("read_file", "run_shell_command", "Grep Tool/x", "mcp__a.b")
      return { name, ...(chance(0.9) ? { id: `c${ids}` } : {}) }
    })
    const before: ReadonlyArray<Part> = [
      ...(chance(0.2) ? [{ text: pick("", prose(9)), thought: true }] : []),
      ...(chance(0.3) ? [{ text: prose(9) }] : [])
    ]
    return [
      {
        role: "model",
        parts: [
          ...before,
          ...calls.map((functionCall, index) => ({
            functionCall: { ...functionCall, args: { path: pick("a.ts", "b/c.ts"), n: below(99) } },
            ...(index === 0 && chance(0.2) ? { thoughtSignature: "c2ln" } : {})
          }))
        ]
      },
      {
        role: "user",
        parts: [
          ...calls.map(({ name, ...rest }): Part => ({
            functionResponse: { ...rest, ...(chance(0.95) ? { name } : {}), ...answered() }
          })),
          ...(chance(0.05) ? [media()] : [])
        ]
      }
    ]
  }

  const closing = (): ReadonlyArray<Content> => {
    const kind = random()
    if (kind < 0.06) return [{ role: "model", parts: [] }]
    if (kind < 0.1) return [{ role: "model", parts: [{ text: "" }] }]
    if (kind < 0.13) return [{ role: "model", parts: [{ text: "", thought: true }] }]
    if (kind < 0.15) return [{ role: "model", parts: [{}] }]
    if (kind < 0.17) return [{ role: "model", parts: [{ text: "", thoughtSignature: "c2ln" }] }]
    if (kind < 0.22)
      return [
        { role: "model", parts: [{ text: prose(9) }] },
        { role: "model", parts: [{ text: "" }] }
      ]
    if (kind < 0.3) return []
    return [{ role: "model", parts: [{ text: prose(chance(0.1) ? 2_000 : 60) }] }]
  }

  const turn = (): ReadonlyArray<Content> => [
    {
      role: "user",
      parts: chance(0.03) ? [] : [{ text: userText() }, ...(chance(0.06) ? [media()] : [])]
    },
    ...Array.from({ length: chance(0.15) ? below(12) : below(4) }, round).flat(),
    ...closing()
  ]

  const history = (): ReadonlyArray<Content> => [
    ...(chance(0.2)
      ? [
          { role: "user" as const, parts: [{ text: snapshot }] },
          { role: "model" as const, parts: [{ text: acknowledgement }] }
        ]
      : []),
    ...Array.from({ length: chance(0.03) ? 0 : 1 + below(9) }, turn).flat()
  ]

  /** Outputs of more than a million characters: in a window of 256,000 tokens they are too long for a summary. */
  const immense = (): ReadonlyArray<Content> => [
    ...Array.from({ length: 9 }, (_, n): ReadonlyArray<Content> => [
      { role: "user", parts: [{ text: `look at ${n}` }] },
      { role: "model", parts: [{ functionCall: { name: "read_file", args: {}, id: `i${n}` } }] },
      {
        role: "user",
        parts: [{ functionResponse: { name: "read_file", id: `i${n}`, response: { output: "x".repeat(150_000) } } }]
      },
      { role: "model", parts: [{ text: `it is ${n}` }] }
    ]).flat(),
    ...turn()
  ]

  const answer = (): Answer => {
    const kind = random()
    if (kind < 0.12) return pick<Answer>([], [{ text: "" }], [{ text: " \n " }], "nothing")
    if (kind < 0.17) return "fail"
    if (kind < 0.27) return [{ text: `<scratchpad>${prose(30)}</scratchpad>\n${snapshot}` }]
    if (kind < 0.35) return [{ text: prose(20), thought: true }, { text: snapshot }, { text: "and more" }]
    if (kind < 0.45) return [{ text: "far too long ".repeat(below(60_000)) }]
    if (kind < 0.6) return [{ text: `\n  ${prose(30)}  \n` }]
    return [{ text: snapshot }]
  }

  return (): GeminiCase => {
    const model = pick("gemini-2.5-pro", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview", "gemma-4-31b-it")
    const limit = model === "gemma-4-31b-it" ? 256_000 : 1_048_576
    const threshold = pick<number | undefined>(undefined, undefined, 0, 0.2, 0.5, 0.7, random())
    const mark = Math.ceil((threshold === undefined || threshold === 0 ? 0.5 : threshold) * limit)
    const promptTokens = Math.min(
      limit - 1,
      pick(
        mark,
        mark - 1,
        mark + 1,
        mark + below(limit - mark),
        mark + below(limit - mark),
        below(limit),
        below(9_000),
        limit - 1 - below(9_000)
      )
    )
    const contents = model === "gemma-4-31b-it" && chance(0.3) ? immense() : history()
    // The original fails to save an answer that has no response; then which saves fail cannot be told by their count.
    const canBreak = contents.every(({ parts }) =>
      parts.every(({ functionResponse: one }) => one === undefined || one.response !== undefined)
    )
    return {
      contents,
      environment: chance(0.6),
      model,
      promptTokens: Math.max(0, promptTokens),
      ...(threshold === undefined ? {} : { threshold }),
      force: chance(0.4),
      hasFailed: chance(0.25),
      answers: [answer(), answer()],
      count: chance(0.3) ? "fail" : below(2 * limit),
      brokenSaves: canBreak && chance(0.15) ? [1 + below(3), 1 + below(6)] : []
    }
  }
}

/** Cases of a seed, always the same ones. */
export const generated = (seed: number, count: number): ReadonlyArray<GeminiCase> => {
  const next = generator(seededRandom(seed))
  return Array.from({ length: count }, next)
}
