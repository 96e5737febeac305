import { Effect, Predicate } from "effect"
import { parsedOrUndefined } from "../domain/JsonText.ts"
import { touchedKey } from "../domain/MemoryText.ts"
import { wireResponse } from "../domain/ToolResult.ts"
import { Memory } from "./Memory.ts"
import type { Call, Tool } from "./Tool.ts"
import { Workspace } from "./Workspace.ts"

/** Memory of folders that are not looked through before an agent works there (spec 7.3). */

/** Tools that work at a place, and the arguments that name it; older names, too. */
const placed: Readonly<Record<string, ReadonlyArray<string>>> = {
  read_file: ["file_path", "absolute_path"],
  read_many_files: ["include", "paths"],
  list_directory: ["dir_path", "path"],
  write_file: ["file_path"],
  replace: ["file_path"]
}

/** What is certain of a pattern: the folders before its first star. */
const certain = (pattern: string): string => {
  const special = pattern.search(/[*?[\]{}]/)
  if (special < 0) return pattern
  const before = pattern.slice(0, special)
  return before.includes("/") ? before.slice(0, before.lastIndexOf("/") + 1) : "."
}

/** Paths are few; a list of a thousand patterns is not gone through. */
const mostPlaces = 20

const objectOf = (args: unknown): unknown => (typeof args === "string" ? parsedOrUndefined(args) : args)

const placesOf = (given: unknown, keys: ReadonlyArray<string>): ReadonlyArray<string> => {
  const args = objectOf(given)
  if (!Predicate.isObject(args)) return []
  const values = keys.flatMap((key): ReadonlyArray<unknown> => {
    const value = Predicate.hasProperty(args, key) ? args[key] : undefined
    return Array.isArray(value) ? value : [value]
  })
  return values.filter(Predicate.isString).slice(0, mostPlaces).map(certain)
}

/**
 * The same tools; where one that works at a place succeeds, its answer carries the memory of the folders on the way there
 * that was not known before, under a key of its own. All other tools stay as they are.
 */
export const onTouch = Effect.fnUntraced(function* (
  tools: ReadonlyArray<Tool>
): Effect.fn.Return<ReadonlyArray<Tool>, never, Memory | Workspace> {
  const memory = yield* Memory
  const workspace = yield* Workspace

  /** What is new about these places. A path that no tool may use is none of ours. */
  const found = Effect.fnUntraced(function* (given: ReadonlyArray<string>) {
    const texts: Array<string> = []
    for (const each of given) {
      const place = yield* Effect.orElseSucceed(workspace.path(each, "read"), () => undefined)
      const text = place === undefined ? undefined : yield* memory.touched(place)
      if (text !== undefined) texts.push(text)
    }
    return texts.length === 0 ? undefined : texts.join("\n\n")
  })

  const carrying = (call: Call, given: ReadonlyArray<string>): Call => ({
    ...call,
    run: Effect.flatMap(call.run, (result) =>
      Effect.map(found(given), (text) =>
        text === undefined ? result : { ...result, value: { ...wireResponse(result.value), [touchedKey]: text } }
      )
    )
  })

  return tools.map((tool): Tool => {
    const keys = placed[tool.name]
    if (keys === undefined) return tool
    return {
      ...tool,
      call: (args, context) => Effect.map(tool.call(args, context), (call) => carrying(call, placesOf(args, keys)))
    }
  })
})
