/** The `replace` tool: replaces text in files. */

import { Effect, type FileSystem, type Path, Result, Schema } from "effect"
import { edit, type EditFault, type Replacement } from "../../../domain/tools/Edit.ts"
import type { Workspace } from "../../workspace/Workspace.ts"
import { makePrepared, type Tool, ToolFailure } from "../Tool.ts"
import { type EditCorrections, EditCorrector } from "./EditCorrector.ts"
import { FileChangeResult, fileChanges, type FileState } from "./FileChange.ts"

const parameters = Schema.Struct({
  file_path: Schema.String.annotate({ description: "The file, absolute or relative to the workspace" }),
  instruction: Schema.optionalKey(
    Schema.String.annotate({ description: "The purpose of the change, in a self-contained sentence" })
  ),
  old_string: Schema.String.annotate({
    description:
      "The text to replace, exactly as in the file, with enough lines around it to be unique. Empty: creates a new file"
  }),
  new_string: Schema.String.annotate({ description: "The replacement text" }),
  allow_multiple: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether to replace every occurrence. Default: there must be exactly one" })
  ),
  expected_replacements: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
      description: "The number of occurrences to replace, if known"
    })
  )
})
type Parameters = typeof parameters.Type

const failed = (type: string, message: string): ToolFailure => new ToolFailure({ type, message })

const places = (found: number): string => (found === 1 ? "1 place" : `${found} places`)

const failureOf = ({ found, type }: EditFault, shown: string, { places: expected }: Replacement): ToolFailure => {
  switch (type) {
    case "edit_no_change":
      return failed(
        type,
        `this replacement would not change ${shown}; give a new_string that differs from the text in the file`
      )
    case "edit_no_occurrence_found":
      return failed(
        type,
        `old_string was not found in ${shown}, which was not changed; read the file again and give the text exactly as it is there`
      )
    case "edit_expected_occurrence_mismatch":
      return failed(
        type,
        `old_string occurs in ${places(found)} of ${shown}, not in ${expected}, so the file was not changed; ` +
          (expected === 1
            ? "include more of the surrounding lines, or set allow_multiple to replace all occurrences"
            : "pass the correct expected_replacements, or set allow_multiple to replace all occurrences")
      )
  }
}

/** The edit that the small model proposes in place of a failed one, else the failure. */
const corrected = Effect.fnUntraced(function* (
  corrector: EditCorrections,
  { path, shown }: FileState,
  text: string,
  replacement: Replacement,
  fault: EditFault,
  instruction: string | undefined
) {
  const failure = failureOf(fault, shown, replacement)
  if (fault.type === "edit_no_change") return yield* failure
  const { newText, oldText } = replacement
  const correction = yield* corrector.correct({
    file: path,
    content: text,
    oldText,
    newText,
    instruction,
    problem: failure.message
  })
  if (correction === undefined) return yield* failure
  if (correction.noChangesRequired) {
    const why = correction.explanation === "" ? "" : `: ${correction.explanation}`
    return yield* failed(
      "edit_no_change_llm_judgement",
      `${shown} seems to have this change already, so it was not changed${why}`
    )
  }
  const again = edit(text, { ...replacement, oldText: correction.search, newText: correction.replace })
  return Result.isSuccess(again) ? again.success.text : yield* failure
})

/** The text of a file after the call. */
const after = Effect.fnUntraced(function* (
  corrector: EditCorrections,
  current: FileState,
  { allow_multiple = false, expected_replacements = 1, instruction, new_string, old_string }: Parameters
) {
  const { shown, text } = current
  if (old_string === "") {
    if (text === undefined) return new_string
    return yield* failed(
      "attempt_to_create_existing_file",
      `${shown} already exists; give the text to replace as old_string, or use write_file to replace all of it`
    )
  }
  if (text === undefined) {
    return yield* failed("file_not_found", `there is no file ${shown}; an empty old_string creates it`)
  }
  if (text.includes("\0")) {
    return yield* failed("read_content_failure", `${shown} is not UTF-8 text, so nothing was replaced`)
  }
  const replacement: Replacement = {
    oldText: old_string,
    newText: new_string,
    places: allow_multiple ? "any" : expected_replacements
  }
  const edited = edit(text, replacement)
  return Result.isSuccess(edited)
    ? edited.success.text
    : yield* corrected(corrector, current, text, replacement, edited.failure, instruction)
})

/** The `replace` tool: another text in place of one that the file has. */
export const replace: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const prepare = yield* fileChanges
    const corrector = yield* EditCorrector
    return makePrepared({
      name: "replace",
      description:
        "Replaces a text in a file with another. Pass old_string as read_file shows it, without line numbers. Differences in white space are tolerated if only one place matches.",
      parameters,
      result: FileChangeResult,
      kind: "edit",
      title: ({ file_path }) => file_path,
      prepare: (args) => prepare(args.file_path, (current) => after(corrector, current, args))
    })
  }
)
