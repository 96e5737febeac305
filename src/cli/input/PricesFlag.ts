import { Effect, type FileSystem, Result } from "effect"
import { Flag } from "effect/cli"
import { builtInPrices, parsePrices, priceProblemText, type Prices } from "../../domain/tokens/Prices.ts"
import { badInput, type ExitError } from "../output/ExitError.ts"
import * as Input from "./Input.ts"

/** The flag `--prices`. */
export const flag = Input.optional(
  Flag.String("prices").pipe(Flag.withMetavar("file")),
  "JSON file of prices by model, in US dollars per million tokens"
)

/** Reads the price table. A file without a valid table is bad input: status 2. */
export const read = Effect.fnUntraced(function* (
  file: string | undefined
): Effect.fn.Return<Prices, ExitError, FileSystem.FileSystem> {
  if (file === undefined) return builtInPrices
  const table = parsePrices(yield* Input.fileText(file, "--prices expects a JSON file of prices"))
  return Result.isFailure(table)
    ? yield* badInput(`${file}: ${priceProblemText(table.failure)}`)
    : { source: file, table: table.success }
})
