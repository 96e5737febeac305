import { Effect, Result } from "effect"
import { parsePrices, pricesWith } from "../../domain/tokens/Prices.ts"
import { badInput } from "../output/ExitError.ts"
import * as FileWindow from "./FileWindow.ts"
import * as Input from "./SharedFlags.ts"

/** The flag `--prices`, and reading the table that it names. */

/** The flag `--prices`. */
export const flag = Input.text("prices", "file", "JSON file of prices by model, in US dollars per million tokens")

/** The built-in prices, extended by the settings `models.<name>.price`. */
const settingPrices = Effect.map(FileWindow.settings, ({ models }) => pricesWith(models))

/** Reads the price table: a file, or the built-in one with the prices of the settings. An invalid one is bad input: status 2. */
export const read = Effect.fnUntraced(function* (file: string | undefined) {
  if (file === undefined) return yield* settingPrices
  const table = parsePrices(yield* Input.fileText(file, "--prices expects a JSON file of prices"))
  return Result.isFailure(table) ? yield* badInput(`${file}: ${table.failure}`) : { source: file, table: table.success }
})
