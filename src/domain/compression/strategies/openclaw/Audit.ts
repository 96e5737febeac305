/** What a summary has to have: its sections, the exact identifiers of the newest messages, and what was asked last. */

/** The sections, in order. */
export const headings = [
  "## Decisions",
  "## Open TODOs",
  "## Constraints/Rules",
  "## Pending user asks",
  "## Exact identifiers"
] as const

/** Identifiers that a summary has to repeat. */
const maxIdentifiers = 12

/** Messages that identifiers are taken from. */
export const identifierMessages = 10

const patterns: ReadonlyArray<RegExp> = [
  /https?:\/\/[^\s"'`<>)\]}]+/g,
  /(?<![\w/.])(?:\.{0,2}\/)?(?:[\w.@-]+\/)+[\w.@-]+/g,
  /\b[A-Za-z]:\\[^\s"'`<>|]+/g,
  /\b[\w.-]+:\d{2,5}\b/g,
  /\b[0-9a-f]{8,}\b/gi,
  /\b\d{6,}\b/g
]

const trimmed = (found: string): string => found.replace(/[.,;:!?]+$/, "")

/** Returns the identifiers in these texts, newest first: addresses, paths, hosts with ports, hashes, long numbers. */
export const identifiersOf = (texts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const text of texts.toReversed()) {
    // A text of megabytes holds no more identifiers that matter than its end.
    const read = text.slice(-20_000)
    for (const pattern of patterns) {
      for (const [match] of read.matchAll(pattern)) {
        const identifier = trimmed(match)
        if ([...found].some((other) => other.includes(identifier))) continue
        found.add(identifier)
        if (found.size >= maxIdentifiers) return [...found]
      }
    }
  }
  return [...found]
}

/** What a summary lacks. */
export interface Shortfall {
  readonly headings: ReadonlyArray<string>
  readonly identifiers: ReadonlyArray<string>
  /** Whether nothing in it is about what the user asked last. */
  readonly ask: boolean
}

const maxKeywords = 12
const commonWords = new Set(
  "about after again also been before being could does from have into just like make more need only other over please same should some such than that the their them then there these they this those want were what when where which while will with would your".split(
    " "
  )
)

const keywordsOf = (ask: string): ReadonlyArray<string> => [
  ...new Set(
    (ask.toLowerCase().match(/[\p{L}\p{N}_]{4,}/gu) ?? [])
      .filter((word) => !commonWords.has(word))
      .slice(0, maxKeywords)
  )
]

const isAbout = (summary: string, ask: string): boolean => {
  const keywords = keywordsOf(ask)
  const text = summary.toLowerCase()
  const hits = keywords.filter((word) => text.includes(word)).length
  return keywords.length === 0 || hits >= (keywords.length >= 3 ? 2 : 1)
}

/** Returns what a summary lacks; undefined when it lacks nothing. Hexadecimal identifiers may differ in case. */
export const audit = (
  summary: string,
  { ask, identifiers }: { readonly ask: string; readonly identifiers: ReadonlyArray<string> }
): Shortfall | undefined => {
  const lower = summary.toLowerCase()
  const holds = (identifier: string) =>
    /^[0-9a-f]+$/i.test(identifier) ? lower.includes(identifier.toLowerCase()) : summary.includes(identifier)
  const lacking: Shortfall = {
    headings: headings.filter((heading) => !summary.includes(heading)),
    identifiers: identifiers.filter((identifier) => !holds(identifier)),
    ask: !isAbout(summary, ask)
  }
  return lacking.headings.length + lacking.identifiers.length === 0 && !lacking.ask ? undefined : lacking
}

/** Describes a shortfall to the model that is asked again, and to the user. */
export const shortfallText = ({ ask, headings: missing, identifiers }: Shortfall): string =>
  [
    ...(missing.length === 0 ? [] : [`these sections are missing: ${missing.join(", ")}`]),
    ...(identifiers.length === 0 ? [] : [`these identifiers are missing: ${identifiers.join(", ")}`]),
    ...(ask ? ["nothing is said about what the user asked last"] : [])
  ].join("; ")

/** Adds what a summary still lacks, so that no compaction fails for it: sections, identifiers, and the user's words. */
export const completed = (summary: string, lacking: Shortfall, ask: string): string => {
  const added: Readonly<Record<string, string>> = {
    "## Pending user asks": lacking.ask ? `- ${ask}` : "",
    "## Exact identifiers": lacking.identifiers.map((identifier) => `- ${identifier}`).join("\n")
  }
  let text = summary.trim()
  for (const heading of headings) {
    const lines = added[heading] ?? ""
    if (lacking.headings.includes(heading)) text += `\n\n${heading}\n${lines === "" ? "None." : lines}`
    else if (lines !== "")
      text = text.replace(new RegExp(`${heading}(?:\\n+None\\.?(?=\\n|$))?`), () => `${heading}\n${lines}`)
  }
  return text
}
