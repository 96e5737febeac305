import { Context, Effect, type FileSystem, type Path, Schema } from "effect"
import { hasCrLf, withCrLf } from "../../domain/Edit.ts"
import { fileContent } from "../../domain/Escapes.ts"
import { makePrepared, type Tool } from "../Tool.ts"
import type { Workspace } from "../Workspace.ts"
import { Changed, fileChanges } from "./FileChange.ts"

/** Whether the models that write files here escape too much (spec 14): then what they write is unescaped first. */
export const UnescapesContent = Context.Reference<boolean>("palimpsest/services/tools/WriteFile/UnescapesContent", {
  defaultValue: () => false
})

/** A file whose lines all end with CR LF keeps that: models write LF, whatever they read. */
const asBefore = (before: string | undefined, content: string): string =>
  before !== undefined && !content.includes("\r") && hasCrLf(before) ? withCrLf(content) : content

/** Writes whole files (spec 14, write_file). */
export const writeFile: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const changes = yield* fileChanges
    const aggressive = yield* UnescapesContent
    return makePrepared({
      name: "write_file",
      description:
        "Puts a text into a file, in place of all that it held. The file and its folders are made where there are none. To change a part of a file use replace.",
      parameters: Schema.Struct({
        file_path: Schema.String.annotate({ description: "The file, absolute or from the workspace's folder" }),
        content: Schema.String.annotate({ description: "All that the file is to hold" })
      }),
      result: Changed,
      kind: "edit",
      title: ({ file_path }) => file_path,
      prepare: ({ content, file_path }) =>
        Effect.gen(function* () {
          const seen = yield* changes.look(file_path)
          return changes.plan(seen, asBefore(seen.text, fileContent(content, aggressive)))
        }).pipe(
          Effect.cached,
          Effect.map((change) => ({
            question: Effect.flatMap(change, changes.question),
            run: Effect.flatMap(change, changes.write)
          }))
        )
    })
  }
)
