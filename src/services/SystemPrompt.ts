import { Effect, FileSystem, Path, Schema } from "effect"
import { decode } from "../domain/Bytes.ts"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { nearest } from "../domain/Nearest.ts"
import { sandboxOf } from "../domain/EnvironmentMessage.ts"
import { type PromptInputs, type SectionKey, sectionKeys, type SectionToggles } from "../domain/prompt/PromptInputs.ts"
import { joined, memoryOf, render, sections, substituted } from "../domain/SystemPrompt.ts"
import { isWithin, quoted } from "../domain/WorkspacePath.ts"
import { Environment } from "./Environment.ts"
import * as RegularFile from "./RegularFile.ts"
import * as WholeFile from "./WholeFile.ts"

/** The system prompt as the person wants it: their switches, or a text of their own in its place (spec 10). */

/** A text of the person's own cannot be used, or the prompt cannot be written where they want it. */
export class SystemPromptError extends Schema.TaggedError<SystemPromptError>()("SystemPromptError", {
  /** Absolute. */
  file: Schema.String,
  message: Schema.String
}) {}

/** What a prompt is built of, beside what the environment says. `toggles` are those of the settings. */
export interface BuildOptions extends Omit<PromptInputs, "sandbox"> {
  /** The working folder, absolute: relative names and the usual places begin here. */
  readonly folder: string
  /** Whether a text that lies in the folder may take the prompt's place. */
  readonly isTrusted: boolean
}

/** What stands in a prompt: a section, the person's own text in place of all of them, or the memory. */
export type PieceKey = SectionKey | "systemMd" | "memory"

/** One piece of a prompt as it stands there, its heading with it. */
export interface Piece {
  readonly key: PieceKey
  readonly text: string
}

/** A prompt, and what it is made of. */
export interface Built {
  readonly text: string
  /** In their order; with a blank line between them they are the text. */
  readonly sections: ReadonlyArray<Piece>
  /** What a person should hear, one line each: variables that mean nothing here. */
  readonly notices: ReadonlyArray<string>
}

/** The largest text of the person's own, in bytes: more would be no instruction. */
const mostBytes = 1_048_576

/** Where a text of the person's own lies unless they say so; the first that there is. The second is Gemini CLI's. */
const usualFiles = [
  [".palimpsest", "system.md"],
  [".gemini", "system.md"]
] as const

const prefix = "GEMINI_PROMPT_"

const isNo = (value: string): boolean => value === "0" || value === "false"
const isYes = (value: string): boolean => value === "1" || value === "true"

/** Which sections the environment switches, and what of it means nothing (spec 10: only `0` and `false` switch one off). */
export const togglesOf = (
  variables: Readonly<Record<string, string>>
): { readonly toggles: SectionToggles; readonly notices: ReadonlyArray<string> } => {
  const keys = new Map(sectionKeys.map((key) => [key.toUpperCase(), key]))
  const toggles: Partial<Record<SectionKey, boolean>> = {}
  const notices: Array<string> = []
  for (const name of Object.keys(variables).sort()) {
    if (!name.startsWith(prefix)) continue
    const rest = name.slice(prefix.length)
    const key = keys.get(rest.toUpperCase())
    const value = (variables[name] ?? "").trim().toLowerCase()
    if (key === undefined) {
      const near = nearest(rest.toUpperCase(), [...keys.keys()], 3)
      notices.push(
        `${name} means nothing: the system prompt has no such section${near === undefined ? "" : `; did you mean ${prefix}${near}?`}`
      )
    } else if (value !== "") toggles[key] = !isNo(value)
  }
  return { toggles, notices }
}

/** What `GEMINI_SYSTEM_MD` and `GEMINI_WRITE_SYSTEM_MD` say (spec 10). */
type Wish = { readonly _tag: "Off" } | { readonly _tag: "Usual" } | { readonly _tag: "File"; readonly file: string }

const wishOf = (variable: string | undefined): Wish => {
  const value = (variable ?? "").trim()
  const word = value.toLowerCase()
  if (word === "" || isNo(word)) return { _tag: "Off" }
  return isYes(word) ? { _tag: "Usual" } : { _tag: "File", file: value }
}

const wrong = (file: string, message: string): SystemPromptError => new SystemPromptError({ file, message })

/** Where a name leads that the person wrote into a variable. */
const placeOf = Effect.fnUntraced(function* (
  folder: string,
  name: string,
  variables: Readonly<Record<string, string>>
): Effect.fn.Return<string, SystemPromptError, Path.Path> {
  const path = yield* Path.Path
  if (name !== "~" && !/^~[\\/]/.test(name)) return path.resolve(folder, name)
  const home = variables["HOME"] ?? variables["USERPROFILE"] ?? ""
  return home === ""
    ? yield* wrong(name, `${quoted(name)} cannot be found: HOME is not set; give the whole path`)
    : path.join(home, name.slice(1))
})

/** The person's own text; its path as they know it, and as it is once links are followed. */
interface Own {
  readonly place: string
  readonly text: string
}

/** Whether a place, with links followed, lies in a folder; undefined: in any. */
const isInside = Effect.fnUntraced(function* (folder: string | undefined, place: string) {
  if (folder === undefined) return true
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return isWithin(yield* Effect.orElseSucceed(fs.realPath(folder), () => folder), place, path.sep)
})

/** The text that a file holds; undefined: it lies out of the folder that it must not leave. */
const readOwn = Effect.fnUntraced(function* (
  file: string,
  within: string | undefined
): Effect.fn.Return<Own | undefined, SystemPromptError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const shown = quoted(file)
  const missing = wrong(
    file,
    `missing system prompt file '${shown}'; write it, or take GEMINI_SYSTEM_MD out of the environment`
  )
  const tooLarge = wrong(file, `the system prompt file ${shown} has more than 1 MiB; make it shorter`)
  const place = yield* fs
    .realPath(file)
    .pipe(
      Effect.mapError((error) =>
        error.reason._tag === "NotFound"
          ? missing
          : wrong(file, `the system prompt file cannot be read: ${diskTrouble(error)}`)
      )
    )
  if (!(yield* isInside(within, place))) return undefined
  const bytes = yield* Effect.gen(function* () {
    const { size } = yield* RegularFile.look(place, shown)
    return size > BigInt(mostBytes) ? yield* tooLarge : yield* RegularFile.read(place, shown)
  }).pipe(
    Effect.catchTag("ToolFailure", ({ message, type }) =>
      type === "file_not_found"
        ? missing
        : wrong(
            file,
            type === "target_is_directory"
              ? `the system prompt file ${shown} is a folder; GEMINI_SYSTEM_MD has to name a file`
              : `the system prompt file cannot be used: ${message}`
          )
    )
  )
  const { text, valid } = decode(bytes)
  if (!valid || text.includes("\0")) return yield* wrong(file, `the system prompt file ${shown} is no text in UTF-8`)
  return { place, text: text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n") }
})

/** The first usual place where something lies, else the first of all. */
const usualPlace = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files = usualFiles.map((names) => path.join(folder, ...names))
  for (const file of files) if (yield* Effect.orElseSucceed(fs.exists(file), () => true)) return file
  return path.join(folder, ...usualFiles[0])
})

/** Writes the prompt where the person wants to look at it: whole or not at all. */
const write = Effect.fnUntraced(function* (
  file: string,
  text: string
): Effect.fn.Return<void, SystemPromptError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  // Who keeps the file elsewhere and links to it finds it changed there.
  const target = yield* Effect.orElseSucceed(fs.realPath(file), () => file)
  const isFree = yield* fs.stat(target).pipe(
    Effect.map(({ type }) => type === "File"),
    Effect.orElseSucceed(() => true)
  )
  if (!isFree) {
    return yield* wrong(file, `${quoted(file)} is no regular file; let GEMINI_WRITE_SYSTEM_MD name another`)
  }
  yield* Effect.mapError(WholeFile.writePrivate(target, `${text}\n`), (error) =>
    wrong(
      file,
      `the system prompt cannot be written (${diskTrouble(error)}); let GEMINI_WRITE_SYSTEM_MD name another file`
    )
  )
}, Effect.uninterruptible)

const untrusted = (variable: string): string =>
  `${variable} is not heeded: this folder is not trusted; give the path of a file, or trust the folder`

const outside = (variable: string, file: string): string =>
  `${variable} is not heeded: ${quoted(file)} leads out of the folder; give the path of a file in the environment`

/**
 * The text that the person has in place of the sections; undefined: none. What a file of a folder names must not lie out of
 * `within`, that folder.
 */
const ownText = Effect.fnUntraced(function* (
  { folder, isTrusted }: Pick<BuildOptions, "folder" | "isTrusted">,
  variables: Readonly<Record<string, string>>,
  within: string | undefined
) {
  const wish = wishOf(variables["GEMINI_SYSTEM_MD"])
  if (wish._tag === "Off") return { own: undefined, notices: [] }
  if (wish._tag === "Usual" && !isTrusted) return { own: undefined, notices: [untrusted("GEMINI_SYSTEM_MD")] }
  const isUsual = wish._tag === "Usual"
  const file = isUsual ? yield* usualPlace(folder) : yield* placeOf(folder, wish.file, variables)
  const own = yield* readOwn(file, isUsual ? folder : within)
  return { own, notices: own === undefined ? [outside("GEMINI_SYSTEM_MD", file)] : [] }
})

/** Writes the prompt if the person wants to see it. What they should hear of it, one line each. */
const keep = Effect.fnUntraced(function* (
  { folder, isTrusted }: Pick<BuildOptions, "folder" | "isTrusted">,
  variables: Readonly<Record<string, string>>,
  own: Own | undefined,
  text: string
) {
  const wish = wishOf(variables["GEMINI_WRITE_SYSTEM_MD"])
  if (wish._tag === "Off") return []
  if (wish._tag === "Usual" && !isTrusted) return [untrusted("GEMINI_WRITE_SYSTEM_MD")]
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file =
    wish._tag === "Usual" ? path.join(folder, ...usualFiles[0]) : yield* placeOf(folder, wish.file, variables)
  // Where there is no file yet, its folder may be a link.
  const place = yield* fs.realPath(file).pipe(
    Effect.catch(() => Effect.map(fs.realPath(path.dirname(file)), (at) => path.join(at, path.basename(file)))),
    Effect.orElseSucceed(() => file)
  )
  if (wish._tag === "Usual" && !(yield* isInside(folder, place))) return [outside("GEMINI_WRITE_SYSTEM_MD", file)]
  // It would be read again, with the memory in it, and grow each time.
  if (own?.place === place) {
    return [`${quoted(file)} was not written: GEMINI_SYSTEM_MD reads it; let GEMINI_WRITE_SYSTEM_MD name another file`]
  }
  yield* write(file, text)
  return []
})

/**
 * Builds the prompt. It reads `GEMINI_PROMPT_*`, which win over the toggles of the settings, `GEMINI_SYSTEM_MD`,
 * `GEMINI_WRITE_SYSTEM_MD` and `SANDBOX`. Equal options, variables and files give the same bytes.
 */
export const build = Effect.fn("SystemPrompt.build")(function* (
  options: BuildOptions
): Effect.fn.Return<Built, SystemPromptError, Environment | FileSystem.FileSystem | Path.Path> {
  const environment = yield* Environment
  const given = yield* environment.variables
  const variables = { ...environment.beneath?.variables, ...given }
  const { notices, toggles } = togglesOf(variables)
  const inputs: PromptInputs = {
    ...options,
    sandbox: sandboxOf(variables["SANDBOX"]),
    toggles: { ...options.toggles, ...toggles }
  }
  const { own, notices: unheeded } = yield* ownText(
    options,
    variables,
    given["GEMINI_SYSTEM_MD"] === undefined ? environment.beneath?.folder : undefined
  )
  const base: ReadonlyArray<Piece> =
    own === undefined
      ? sections(inputs).map((section) => ({ key: section.key, text: render(section) }))
      : [{ key: "systemMd", text: joined([substituted(own.text, inputs)]) }]
  const memory = joined([memoryOf(inputs)])
  const pieces = [...base, { key: "memory" as const, text: memory }].filter(({ text }) => text !== "")
  const text = joined(pieces.map((piece) => piece.text))
  // No file says where a file is written.
  const kept = yield* keep(options, given, own, text)
  return { text, sections: pieces, notices: [...notices, ...unheeded, ...kept] }
})
