/** Shows memory files to the user: as a list with their tokens, or with their texts. */

import { Effect } from "effect"
import type { LoadedMemory } from "../../domain/memory/MemoryText.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import { failed } from "./ExitError.ts"
import * as Output from "./Output.ts"
import { noticeLine } from "./RuntimeText.ts"
import { detailLines } from "./ToolCallText.ts"

/** Escapes control characters and keeps line breaks. */
export const printableLines = (text: string): string => detailLines(text).join("\n")

/** Adds the token count of each file, and makes lines of all problems. */
export const withTokens = Effect.fnUntraced(function* (loaded: LoadedMemory) {
  const counter = yield* TokenCounter
  const counts = yield* counter
    .count(loaded.blocks.map(({ text }) => ({ text })))
    .pipe(Effect.mapError(({ message }) => failed(`the tokens could not be counted: ${message}`)))
  const untrusted = loaded.untrusted.map((file) => noticeLine({ _tag: "UntrustedMemory", file }))
  const problems = [...untrusted, ...loaded.problems]
  const blocks = loaded.blocks.map((block, i) => ({ ...block, tokens: Math.ceil(counts[i] ?? 0) }))
  return { blocks, tokens: blocks.reduce((sum, { tokens }) => sum + tokens, 0), problems }
})
type CountedMemory = Effect.Success<ReturnType<typeof withTokens>>

/** The number of files and their tokens. */
export const totalLine = ({ blocks, tokens }: CountedMemory): string =>
  `${Output.plural(blocks.length, "file")}, ${Output.plural(tokens, "token")} in every request`

/** The text shown when there is no memory file. */
export const noMemoryText = 'memory is empty here; add a fact with "palimpsest memory add"'

/** The files as a table: scope, source and tokens. */
export const listText = (memory: CountedMemory, { bold, dim }: Output.Style = Output.plain): string => {
  if (memory.blocks.length === 0) return noMemoryText
  const rows = memory.blocks.flatMap(({ imports, shown, source, tokens }) => [
    [source, bold(printableLine(shown)), Output.number(tokens)],
    ...imports.map((file) => ["", dim(`  imports ${printableLine(file)}`), ""])
  ])
  return `${Output.table([["SOURCE", "FILE", "TOKENS"], ...rows], "llr")}\n${totalLine(memory)}`
}

/** The whole memory, each text under the name of its file. */
export const showText = (memory: CountedMemory, { bold, dim }: Output.Style = Output.plain): string => {
  if (memory.blocks.length === 0) return noMemoryText
  const blocks = memory.blocks.map(
    ({ imports, shown, source, text, tokens }) =>
      `${bold(printableLine(shown))} ${dim(`(${source}, ${Output.plural(tokens, "token")}${imports.length === 0 ? "" : `, ${Output.plural(imports.length, "import")}`})`)}\n${printableLines(text.trim())}`
  )
  return `${blocks.join("\n\n")}\n\n${totalLine(memory)}`
}
