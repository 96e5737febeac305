/** Loads the memory of a folder when a tool first works in it. */

import { Effect, Path, Predicate } from "effect"
import { touchedMemoryKey } from "../../domain/memory/MemoryText.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { wireResponse } from "../../domain/tools/ToolResult.ts"
import type { Call, Tool } from "../tools/Tool.ts"
import { Workspace } from "../workspace/Workspace.ts"
import { Memory } from "./Memory.ts"

/** Tools that work on paths, and their path arguments, including older names. */
const pathArguments: Readonly<Record<string, ReadonlyArray<string>>> = {
  read_file: ["file_path", "absolute_path"],
  read_many_files: ["include", "paths"],
  list_directory: ["dir_path", "path"],
  write_file: ["file_path"],
  replace: ["file_path"]
}

/** The fixed part of a pattern: the folders before its first wildcard. */
const literalFolder = (pattern: string): string => {
  const special = pattern.search(/[*?[\]{}]/)
  if (special < 0) return pattern
  const before = pattern.slice(0, special)
  return before.includes("/") ? before.slice(0, before.lastIndexOf("/") + 1) : "."
}

/** Most paths of one call examined. */
const maxPaths = 20

const objectOf = (args: unknown): unknown => (typeof args === "string" ? parsedOrUndefined(args) : args)

const pathsIn = (input: unknown, keys: ReadonlyArray<string>): ReadonlyArray<string> => {
  const args = objectOf(input)
  if (!Predicate.isObject(args)) return []
  const values = keys.flatMap((key): ReadonlyArray<unknown> => {
    const value = Predicate.hasProperty(args, key) ? args[key] : undefined
    return Array.isArray(value) ? value : [value]
  })
  return values.filter(Predicate.isString).slice(0, maxPaths).map(literalFolder)
}

/**
 * Wraps tools so that a successful call on a path adds the new memory of its folders to the response, under a separate
 * key. Tools without path arguments are unchanged.
 */
export const onTouch = Effect.fnUntraced(function* (tools: ReadonlyArray<Tool>) {
  const memory = yield* Memory
  const path = yield* Path.Path
  const { root } = yield* Workspace

  /** The new memory for these paths; none for paths outside trusted folders of the workspace. */
  const newMemory = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
    const texts: Array<string> = []
    for (const each of paths) {
      const text = yield* memory.touched(path.resolve(root, each))
      if (text !== undefined) texts.push(text)
    }
    return texts.length === 0 ? undefined : texts.join("\n\n")
  })

  const carrying = (call: Call, paths: ReadonlyArray<string>): Call => ({
    ...call,
    run: Effect.flatMap(call.run, (result) =>
      Effect.map(newMemory(paths), (text) =>
        text === undefined ? result : { ...result, value: { ...wireResponse(result.value), [touchedMemoryKey]: text } }
      )
    )
  })

  return tools.map((tool): Tool => {
    const keys = pathArguments[tool.name]
    if (keys === undefined) return tool
    return {
      ...tool,
      call: (args, context) => Effect.map(tool.call(args, context), (call) => carrying(call, pathsIn(args, keys)))
    }
  })
})
