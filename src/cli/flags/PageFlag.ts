import { Effect } from "effect"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as WrittenExport from "../output/WrittenExport.ts"
import * as Input from "./SharedFlags.ts"

/** The flag `--html`, and writing the page that it names. */

/** The flag `--html`. */
export const flag = Input.text("html", "file", "Write a self-contained page with charts instead of text")

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
export const write = Effect.fnUntraced(function* (file: string, page: Effect.Effect<string>) {
  const html = yield* Output.progress(`drawing ${file}`)(page)
  yield* WrittenExport.writeText(file, html)
  if (file !== "-") yield* Output.notice(`wrote the page to ${file}`)
})
