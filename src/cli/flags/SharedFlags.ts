/** The arguments and flags that commands share, and the human-readable number formats they accept. */

import { Effect, FileSystem, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { OutputForm } from "../../domain/conversation/ToolOutputShortening.ts"
import { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { badInput, type ExitError } from "../output/ExitError.ts"

/** Adds examples to the help page of a command: command lines, each with what it does. */
export const withExamples = (examples: Readonly<Record<string, string>>) =>
  Command.withExamples(Object.entries(examples).map(([command, description]) => ({ command, description })))

/** A boolean flag that is off by default. */
export const flag = (name: string, description: string): Flag.Flag<boolean> =>
  withDefault(Flag.Boolean(name), false, description)

/** An optional flag: undefined when it is absent. */
export const optional = <A>(flag: Flag.Flag<A>, description: string): Flag.Flag<A | undefined> =>
  flag.pipe(Flag.withDescription(description), Flag.optional, Flag.map(Option.getOrUndefined))

/** A flag that has a value when it is absent. */
export const withDefault = <A>(flag: Flag.Flag<A>, value: A, description: string): Flag.Flag<A> =>
  flag.pipe(Flag.withDescription(description), Flag.withDefault(value))

/** An optional flag that takes a text. */
export const text = (name: string, metavar: string, description: string): Flag.Flag<string | undefined> =>
  optional(Flag.String(name).pipe(Flag.withMetavar(metavar)), description)

/** An optional flag that takes one of these words. */
export const choice = <const L extends ReadonlyArray<string>>(name: string, words: L, description: string) =>
  optional(Flag.Literals(name, words), description)

/** An argument. */
export const argument = (name: string, description: string): Argument.Argument<string> =>
  Argument.String(name).pipe(Argument.withDescription(description))

/** An optional argument: undefined when it is absent. */
export const optionalArgument = (name: string, description: string): Argument.Argument<string | undefined> =>
  argument(name, description).pipe(Argument.optional, Argument.map(Option.getOrUndefined))

/** The conversation a command works on. */
const file = argument("file", "Conversation file, - for standard input, or the beginning of a session's id (see find)")

/** The flag `--from`; undefined detects the format. */
export const from = choice("from", SourceFormat.literals, "Format of the file (default: detected)")

/** The flag `--lenient`: skips lines that cannot be read. */
export const lenient = flag("lenient", "Skip lines that cannot be read")

/** The flag `--json`. */
export const json = flag("json", "Print one JSON document")

/** The flag `--tool-output-form`; undefined: the setting `toolOutput.form`, else the default of the strategy. */
export const outputForm = choice(
  "tool-output-form",
  OutputForm.literals,
  "Form of tool output beyond the budget (default: last-lines)"
)

/** The arguments of every command that reads a conversation. */
export const conversation = { file, from, lenient }

const units: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  ki: 1024,
  mi: 1024 ** 2,
  gi: 1024 ** 3
}

/** Parses `64000`, `64_000`, `64k`, `1.5M` or `64Ki` as a whole number, or returns undefined. */
const parseSize = (text: string): number | undefined => {
  const [, digits, unit] = /^(\d[\d_]*(?:\.\d+)?)\s*([kmg]i?)?$/i.exec(text.trim()) ?? []
  if (digits === undefined) return undefined
  const value = Number(digits.replaceAll("_", "")) * (units[(unit ?? "").toLowerCase()] ?? Number.NaN)
  const whole = Math.round(value)
  return Number.isSafeInteger(whole) && Math.abs(whole - value) < 1e-6 ? whole : undefined
}

/** Parses `0.5`, `.5` or `50%` as a number from 0 to 1, or returns undefined. */
const parseShare = (text: string): number | undefined => {
  const [, digits, percent] = /^(\d+(?:\.\d*)?|\.\d+)\s*(%)?$/.exec(text.trim()) ?? []
  if (digits === undefined) return undefined
  const value = percent === undefined ? Number(digits) : Number(digits) / 100
  return value <= 1 ? value : undefined
}

/** Parses `10-20`, `10-` (to the end) or `10`, counted from 1, or returns undefined. */
const parseLines = (text: string): readonly [from: number, to: number] | undefined => {
  const [, first, dash, last] = /^(\d+)\s*(-)?\s*(\d+)?$/.exec(text.trim()) ?? []
  if (first === undefined || (dash === undefined && last !== undefined)) return undefined
  const from = Number(first)
  const to = last === undefined ? (dash === undefined ? from : Number.MAX_SAFE_INTEGER) : Number(last)
  return from >= 1 && from <= to && Number.isSafeInteger(to) ? [from, to] : undefined
}

/** A flag whose text is parsed. `expected`: what it takes, for a text that `parse` returns undefined for. */
export const parsed = <A>(
  name: string,
  metavar: string,
  expected: string,
  parse: (text: string) => A | undefined
): Flag.Flag<A> =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(parse(text)),
      () => expected
    ),
    Flag.withMetavar(metavar)
  )

/** A flag that must be given, and takes a whole number, also as `64k` or `1.5M` (thousands; `Ki` and `Mi` count in 1024s). */
export const requiredSize = (name: string, description: string): Flag.Flag<number> =>
  parsed(name, "number", "a whole number, such as 64000, 64k or 1.5M", parseSize).pipe(
    Flag.withDescription(description)
  )

/** An optional flag that takes a whole number, as `requiredSize` does. */
export const size = (name: string, description: string): Flag.Flag<number | undefined> =>
  optional(requiredSize(name, description), description)

/** An optional flag that takes a share of a whole. */
export const share = (name: string, description: string): Flag.Flag<number | undefined> =>
  optional(parsed(name, "fraction", "a fraction from 0 to 1, such as 0.5 or 50%", parseShare), description)

const parseModels = (text: string): readonly [string, ...ReadonlyArray<string>] | undefined => {
  const [first = "", ...rest] = text.split(",").map((name) => name.trim())
  return first === "" || rest.includes("") ? undefined : [first, ...rest]
}

/** An optional flag that takes the name of a model, or several with commas between them. */
export const models = (name: string, description: string) =>
  optional(parsed(name, "name,…", "the name of a model, or names with commas between them", parseModels), description)

/** An optional flag that takes a range of lines. */
export const lines = (name: string, description: string) =>
  optional(parsed(name, "A-B", "lines counted from 1, such as 10-20, 10- or 10", parseLines), description)

/** Reads the file that a flag names. `expected` says what a missing one should be. An unreadable one is bad input: status 2. */
export const fileText = (file: string, expected: string): Effect.Effect<string, ExitError, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) => fs.readFileString(file)).pipe(
    Effect.mapError(({ reason }) =>
      badInput(
        `${file}: ${reason._tag === "NotFound" ? `no such file; ${expected}` : `cannot be read (${reason.description ?? reason._tag})`}`
      )
    )
  )

const isStrategy = Schema.is(StrategyName)
/** The strategies that exist, for descriptions and messages. */
export const strategyNames = StrategyName.literals.join(", ")

/** Parses a list such as `palimpsest,gemini` into distinct strategies; undefined when a name is unknown. */
const parseStrategies = (text: string): ReadonlyArray<StrategyName> | undefined => {
  const distinctNames = [...new Set(text.split(",").map((name) => name.trim()))]
  const known = distinctNames.filter(isStrategy)
  return known.length === distinctNames.length ? known : undefined
}

/** `--strategy` of a command that works with one strategy. */
export const strategy: Flag.Flag<StrategyName> = parsed("strategy", "name", `one of ${strategyNames}`, (text) =>
  isStrategy(text) ? text : undefined
)

/** `--strategy` of a command that compares strategies. */
export const strategies: Flag.Flag<ReadonlyArray<StrategyName>> = parsed(
  "strategy",
  "name,…",
  `strategies with commas between them, of ${strategyNames}`,
  parseStrategies
)

/** `--threshold` of a command that compresses a conversation of a file. */
export const threshold = share(
  "threshold",
  "Compress when this part of the window is used (default: 0.5, or what the strategy says)"
)
