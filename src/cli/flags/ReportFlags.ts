/** The flags of commands that print a report: `--prices` and the table that it names, `--html` and the page. */

import { Effect, Result } from "effect"
import { parsePrices, pricesWith } from "../../domain/tokens/Prices.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as WrittenExport from "../output/WrittenExport.ts"
import * as FileWindow from "./FileWindow.ts"
import * as Input from "./SharedFlags.ts"

/** The flag `--prices`. */
export const prices = Input.text("prices", "file", "JSON file of prices by model, in US dollars per million tokens")

/** The built-in prices, extended by the settings `models.<name>.price`. */
const settingPrices = Effect.map(FileWindow.settings, ({ models }) => pricesWith(models))

/** Reads the price table: a file, or the built-in one with the prices of the settings. An invalid one is bad input: status 2. */
export const readPrices = Effect.fnUntraced(function* (file: string | undefined) {
  if (file === undefined) return yield* settingPrices
  const table = parsePrices(yield* Input.fileText(file, "--prices expects a JSON file of prices"))
  return Result.isFailure(table) ? yield* badInput(`${file}: ${table.failure}`) : { source: file, table: table.success }
})

/** The flag `--html`. */
export const html = Input.text("html", "file", "Write a self-contained page with charts instead of text")

/** Fails if the page would overwrite the input file, even under another name, or share standard output with `--json`. */
export const checkPlace = Effect.fnUntraced(function* (
  file: string,
  { html, json }: { readonly html: string | undefined; readonly json: boolean }
) {
  if (html === undefined) return
  if (html === "-" && json) return yield* badInput("standard output takes one of --html - and --json")
  yield* WrittenExport.checkPlace(html)
  if (file !== "-" && (yield* WrittenExport.isSameFile(file, html))) {
    return yield* badInput(`${html} is the input file; write the page to another file`)
  }
})

/** Writes a page and prints its path. */
export const writePage = Effect.fnUntraced(function* (file: string, page: Effect.Effect<string>) {
  yield* WrittenExport.writeText(file, yield* Output.progress(`drawing ${file}`)(page))
  if (file !== "-") yield* Output.notice(`wrote the page to ${file}`)
})
