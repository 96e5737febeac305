/**
 * Says in at most three sentences what the figures of a conversation mean and what to do: the findings that matter most, each
 * with its numbers and its advice. Names stand between backticks.
 */

import { dollars, number, plural, share } from "../text/NumberText.ts"
import type { CacheBreak } from "./CacheBreaks.ts"
import type { Inspection } from "./Inspection.ts"

/** The compaction that lost most, and what a snapshot that code writes would keep. */
export interface LostFacts {
  /** The last message before the compaction; null at the start. */
  readonly after: string | null
  /** The most used facts of what it dropped. */
  readonly facts: number
  /** Those that are gone, the most used first. Empty names are counted and not listed. */
  readonly lost: ReadonlyArray<string>
  /** Number of facts that a snapshot of the same size keeps when code writes it; undefined when none was made. */
  readonly keptByCode: number | undefined
}

/** The figures that a verdict is made of. */
export interface Findings {
  readonly inspection: Pick<
    Inspection,
    "tokens" | "kinds" | "tools" | "reads" | "largest" | "compactions" | "broken" | "cost"
  >
  /** The names of the kinds of parts. */
  readonly kindNames: Readonly<Record<string, string>>
  readonly lost: LostFacts | undefined
  readonly breaks: ReadonlyArray<CacheBreak>
  /** Whether names from the texts may be shown. */
  readonly tellsNames: boolean
}

interface Sentence {
  /** How much it matters: the share of the tokens or of the cost that it is about, roughly. */
  readonly weight: number
  readonly text: string
}

const maxSentences = 3
const namedFacts = 3
const maxNameChars = 60

const quotedName = (name: string): string => {
  const line = name.replace(/[`\s]+/g, " ").trim()
  return `\`${line.length > maxNameChars ? `…${line.slice(1 - maxNameChars)}` : line}\``
}

const fileName = (path: string): string => path.split(/[\\/]/).at(-1) || path

/** Joins names: `a`, `b` and `c`. */
const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`

const lostSentence = ({ lost, tellsNames }: Findings): ReadonlyArray<Sentence> => {
  if (lost === undefined || lost.facts === 0 || lost.lost.length < lost.facts / 20) return []
  const { after, facts, keptByCode } = lost
  const kept = facts - lost.lost.length
  const names = tellsNames ? lost.lost.filter((name) => name !== "").slice(0, namedFacts) : []
  const among = names.length === 0 ? "" : `, among them ${listed(names.map(quotedName))}`
  const where = after === null ? "at the start" : `after ${after}`
  const code =
    keptByCode !== undefined && keptByCode > kept
      ? `; a snapshot of the same size that code writes keeps ${number(keptByCode)}`
      : "; ask for them again by name, or recall them"
  return [
    {
      weight: lost.lost.length / facts,
      text: `The compaction ${where} lost ${number(lost.lost.length)} of ${plural(facts, "fact")}${among}${code}.`
    }
  ]
}

const readSentence = ({ inspection, tellsNames }: Findings): ReadonlyArray<Sentence> => {
  const { reads, tokens } = inspection
  const [worst] = reads
  const repeated = reads.reduce((total, read) => total + read.repeated, 0)
  if (worst === undefined || repeated < tokens.all / 50) return []
  const others = reads.length - 1
  const file = tellsNames ? quotedName(fileName(worst.path)) : "One file"
  const all = share(repeated, tokens.all)
  const rest =
    others === 0
      ? `; rereading took ${all} of all tokens`
      : `, and with ${plural(others, "other file")} rereading took ${all} of all tokens`
  return [
    {
      weight: (repeated / tokens.all) * 2,
      text: `${file} was read ${plural(worst.reads, "time")} (${plural(worst.tokens, "token")})${rest}; ask for the lines that matter.`
    }
  ]
}

const breakSentence = ({ breaks, inspection }: Findings): ReadonlyArray<Sentence> => {
  const priced = breaks.filter(({ cost }) => cost !== undefined)
  const cost = priced.reduce((sum, one) => sum + (one.cost ?? 0), 0)
  const total = inspection.cost.total ?? 0
  const worst = [...priced].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0))[0]
  if (worst === undefined || total <= 0 || cost < total / 50) return []
  const why = worst.detail.replace("; ", ", ")
  const advice = worst.avoid.startsWith("nothing: ")
    ? `nothing avoids it: ${worst.avoid.slice("nothing: ".length).replace("; ", ", ")}`
    : `better: ${worst.avoid}`
  return [
    {
      weight: (cost / total) * 2,
      text: `The prompt cache broke ${plural(breaks.length, "time")}, for ${dollars(cost)} of ${dollars(total)}; most expensive: ${why} (${advice}).`
    }
  ]
}

const largestSentence = ({ inspection, kindNames }: Findings): ReadonlyArray<Sentence> => {
  const { largest, tokens } = inspection
  const [part] = largest
  if (part === undefined || part.tokens < tokens.all / 10 || part.tokens < 1_000) return []
  const by =
    part.tool === null
      ? (kindNames[part.kind] ?? "text")
      : `${kindNames[part.kind] ?? "text"} of ${quotedName(part.tool)}`
  const advice = part.kind === "output" ? "; a narrower call would have been enough" : ""
  return [
    {
      weight: part.tokens / tokens.all,
      text: `One part, ${by} in ${part.entry}, has ${number(part.tokens)} tokens, ${share(part.tokens, tokens.all)} of all${advice}.`
    }
  ]
}

const brokenSentence = ({ inspection: { broken } }: Findings): ReadonlyArray<Sentence> =>
  broken.responses.length === 0
    ? []
    : [
        {
          weight: 2,
          text: `${plural(broken.responses.length, "tool result")} ${broken.responses.length === 1 ? "has" : "have"} no call, and agents refuse to resume such a conversation; \`palimpsest rescue\` repairs it.`
        }
      ]

const largestKindSentence = ({ inspection, kindNames }: Findings): Sentence => {
  const { compactions, kinds, tokens, tools } = inspection
  const [kind] = kinds
  const [tool] = tools
  if (kind === undefined || tokens.all === 0) return { weight: 0, text: "This conversation has no counted content." }
  const most =
    tool === undefined
      ? ""
      : `, and ${quotedName(tool.tool)} alone has ${share(tool.arguments + tool.output, tokens.all)}`
  const now =
    compactions.length === 0
      ? "nothing was compacted"
      : `${number(tokens.view)} of ${number(tokens.all)} tokens are in the view now`
  return {
    weight: 0,
    text: `${share(kind.tokens, tokens.all)} of all tokens are ${kindNames[kind.kind] ?? kind.kind}${most}; ${now}.`
  }
}

/** Returns the sentences, what matters most first. There is always one. */
export const verdictOf = (findings: Findings): ReadonlyArray<string> =>
  [
    ...[lostSentence, readSentence, breakSentence, largestSentence, brokenSentence]
      .flatMap((make) => make(findings))
      .sort((a, b) => b.weight - a.weight),
    largestKindSentence(findings)
  ]
    .slice(0, maxSentences)
    .map(({ text }) => text)
