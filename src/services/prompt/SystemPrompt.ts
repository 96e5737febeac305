/** Builds the system prompt with the user's choices: section switches, or a custom text in its place. */

import { Effect, FileSystem, Path, Schema } from "effect"
import { sandboxOf } from "../../domain/prompt/EnvironmentMessage.ts"
import {
  type PromptInputs,
  type SectionKey,
  sectionKeys,
  type SectionToggles
} from "../../domain/prompt/PromptInputs.ts"
import {
  agentRules as domainRules,
  joined,
  memoryOf,
  render,
  sections,
  substituted
} from "../../domain/prompt/SystemPrompt.ts"
import { decode } from "../../domain/text/Bytes.ts"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"
import { closestName } from "../../domain/text/SpellingSuggestion.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import { Environment } from "../platform/Environment.ts"
import * as RegularFile from "../platform/RegularFile.ts"

/** A custom prompt cannot be used, or the prompt cannot be written to the requested file. */
export class SystemPromptError extends Schema.TaggedError<SystemPromptError>()("SystemPromptError", {
  /** Absolute path. */
  file: Schema.String,
  message: Schema.String
}) {}

/** The inputs of a prompt besides the environment. `toggles` come from settings. */
export interface BuildOptions extends Omit<PromptInputs, "sandbox"> {
  /** The absolute working folder: relative names and default paths start here. */
  readonly folder: string
  /** Whether a file in the folder may replace the prompt. */
  readonly isTrusted: boolean
}

/** A part of a prompt: a section, the custom text in place of all sections, or memory. */
export type PieceKey = SectionKey | "systemMd" | "memory"

/** One part of a prompt, with its heading. */
export interface PromptPiece {
  readonly key: PieceKey
  readonly text: string
}

/** A prompt and its parts. */
export interface BuiltPrompt {
  readonly text: string
  /** In order; joined by blank lines they are the text. */
  readonly sections: ReadonlyArray<PromptPiece>
  /** Lines for the user: variables without effect. */
  readonly notices: ReadonlyArray<string>
}

/** Largest custom prompt, in bytes. */
const maxFileBytes = 1_048_576

/** Default paths of a custom prompt; the first existing one is used. The second is Gemini CLI's. */
const defaultFiles = [
  [".palimpsest", "system.md"],
  [".gemini", "system.md"]
] as const

const prefix = "GEMINI_PROMPT_"

const isNo = (value: string): boolean => value === "0" || value === "false"
const isYes = (value: string): boolean => value === "1" || value === "true"

/** The sections switched by `GEMINI_PROMPT_*`, and variables without effect. Only `0` and `false` disable a section. */
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
      const near = closestName(rest.toUpperCase(), [...keys.keys()], 3)
      notices.push(
        `${name} has no effect: the system prompt has no such section${near === undefined ? "" : `; did you mean ${prefix}${near}?`}`
      )
    } else if (value !== "") toggles[key] = !isNo(value)
  }
  return { toggles, notices }
}

/** The parsed value of `GEMINI_SYSTEM_MD` or `GEMINI_WRITE_SYSTEM_MD`. */
type PromptOverride =
  | { readonly _tag: "Off" }
  | { readonly _tag: "Default" }
  | { readonly _tag: "File"; readonly file: string }

const parseOverride = (variable: string | undefined): PromptOverride => {
  const value = (variable ?? "").trim()
  const word = value.toLowerCase()
  if (word === "" || isNo(word)) return { _tag: "Off" }
  return isYes(word) ? { _tag: "Default" } : { _tag: "File", file: value }
}

const wrong = (file: string, message: string): SystemPromptError => new SystemPromptError({ file, message })

/** Resolves a path from a variable. */
const resolvePath = Effect.fnUntraced(function* (
  folder: string,
  name: string,
  variables: Readonly<Record<string, string>>
) {
  const path = yield* Path.Path
  if (name !== "~" && !/^~[\\/]/.test(name)) return path.resolve(folder, name)
  const home = variables["HOME"] ?? variables["USERPROFILE"] ?? ""
  return home === ""
    ? yield* wrong(name, `${quotedPath(name)} cannot be found: HOME is not set; give an absolute path`)
    : path.join(home, name.slice(1))
})

/** A custom prompt, with its path as the user knows it and with links resolved. */
interface CustomPrompt {
  readonly place: string
  readonly text: string
}

/** Whether a resolved path is in a folder. An undefined folder contains everything. */
const isInside = Effect.fnUntraced(function* (folder: string | undefined, place: string) {
  if (folder === undefined) return true
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return isWithin(yield* Effect.orElseSucceed(fs.realPath(folder), () => folder), place, path.sep)
})

/** The content of a custom prompt; undefined when the file is outside the folder it must be in. */
const readCustomPrompt = Effect.fnUntraced(function* (file: string, requiredFolder: string | undefined) {
  const fs = yield* FileSystem.FileSystem
  const shown = quotedPath(file)
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
          : wrong(file, `the system prompt file cannot be read: ${diskErrorText(error)}`)
      )
    )
  if (!(yield* isInside(requiredFolder, place))) return undefined
  const bytes = yield* Effect.gen(function* () {
    const { size } = yield* RegularFile.inspect(place, shown)
    return size > BigInt(maxFileBytes) ? yield* tooLarge : yield* RegularFile.read(place, shown)
  }).pipe(
    Effect.catchTag("FileReadError", ({ message, type }) =>
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
  if (!valid || text.includes("\0")) return yield* wrong(file, `the system prompt file ${shown} is not UTF-8 text`)
  return { place, text: text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n") }
})

/** The first existing default path, else the first one. */
const defaultFile = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files = defaultFiles.map((names) => path.join(folder, ...names))
  for (const file of files) if (yield* Effect.orElseSucceed(fs.exists(file), () => true)) return file
  return path.join(folder, ...defaultFiles[0])
})

/** Writes the prompt to a file atomically. */
const write = Effect.fnUntraced(function* (file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const isFree = yield* fs.stat(file).pipe(
    Effect.map(({ type }) => type === "File"),
    Effect.orElseSucceed(() => true)
  )
  if (!isFree) {
    return yield* wrong(file, `${quotedPath(file)} is not a regular file; let GEMINI_WRITE_SYSTEM_MD name another`)
  }
  yield* Effect.mapError(AtomicFile.rewritePrivate(file, `${text}\n`), (error) =>
    wrong(
      file,
      `the system prompt cannot be written (${diskErrorText(error)}); let GEMINI_WRITE_SYSTEM_MD name another file`
    )
  )
}, Effect.uninterruptible)

const untrusted = (variable: string): string =>
  `${variable} is ignored: this folder is not trusted; give the path of a file, or trust the folder`

const outside = (variable: string, file: string): string =>
  `${variable} is ignored: ${quotedPath(file)} leads out of the folder; give the path of a file in the environment`

/**
 * The custom prompt; undefined when there is none. A file named by a folder's settings must be inside that folder
 * (`requiredFolder`).
 */
const customPrompt = Effect.fnUntraced(function* (
  { folder, isTrusted }: Pick<BuildOptions, "folder" | "isTrusted">,
  variables: Readonly<Record<string, string>>,
  requiredFolder: string | undefined
) {
  const wish = parseOverride(variables["GEMINI_SYSTEM_MD"])
  if (wish._tag === "Off") return { own: undefined, notices: [] }
  if (wish._tag === "Default" && !isTrusted) return { own: undefined, notices: [untrusted("GEMINI_SYSTEM_MD")] }
  const isDefault = wish._tag === "Default"
  const file = isDefault ? yield* defaultFile(folder) : yield* resolvePath(folder, wish.file, variables)
  const own = yield* readCustomPrompt(file, isDefault ? folder : requiredFolder)
  return { own, notices: own === undefined ? [outside("GEMINI_SYSTEM_MD", file)] : [] }
})

/** Writes the prompt when requested. Returns lines for the user. */
const keep = Effect.fnUntraced(function* (
  { folder, isTrusted }: Pick<BuildOptions, "folder" | "isTrusted">,
  variables: Readonly<Record<string, string>>,
  own: CustomPrompt | undefined,
  text: string
) {
  const wish = parseOverride(variables["GEMINI_WRITE_SYSTEM_MD"])
  if (wish._tag === "Off") return []
  if (wish._tag === "Default" && !isTrusted) return [untrusted("GEMINI_WRITE_SYSTEM_MD")]
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file =
    wish._tag === "Default" ? path.join(folder, ...defaultFiles[0]) : yield* resolvePath(folder, wish.file, variables)
  // Before the file exists, its folder may be a link.
  const place = yield* fs.realPath(file).pipe(
    Effect.catch(() => Effect.map(fs.realPath(path.dirname(file)), (at) => path.join(at, path.basename(file)))),
    Effect.orElseSucceed(() => file)
  )
  if (wish._tag === "Default" && !(yield* isInside(folder, place))) return [outside("GEMINI_WRITE_SYSTEM_MD", file)]
  // Otherwise the prompt would be read again with its memory, and grow each time.
  if (own?.place === place) {
    return [
      `${quotedPath(file)} was not written: GEMINI_SYSTEM_MD reads it; let GEMINI_WRITE_SYSTEM_MD name another file`
    ]
  }
  yield* write(file, text)
  return []
})

/**
 * Builds the prompt. Reads `GEMINI_PROMPT_*` (which override the toggles in settings), `GEMINI_SYSTEM_MD`,
 * `GEMINI_WRITE_SYSTEM_MD` and `SANDBOX`. Equal options, variables and files give equal bytes.
 */
export const build = Effect.fn("SystemPrompt.build")(function* (options: BuildOptions) {
  const environment = yield* Environment
  const ownVariables = yield* environment.variables
  const variables = { ...environment.beneath?.variables, ...ownVariables }
  const { notices, toggles } = togglesOf(variables)
  const inputs: PromptInputs = {
    ...options,
    sandbox: sandboxOf(variables["SANDBOX"]),
    toggles: { ...options.toggles, ...toggles }
  }
  const { own, notices: unheeded } = yield* customPrompt(
    options,
    variables,
    ownVariables["GEMINI_SYSTEM_MD"] === undefined ? environment.beneath?.folder : undefined
  )
  const base: ReadonlyArray<PromptPiece> =
    own === undefined
      ? sections(inputs).map((section) => ({ key: section.key, text: render(section) }))
      : [{ key: "systemMd", text: joined([substituted(own.text, inputs)]) }]
  const memory = joined([memoryOf(inputs)])
  const pieces = [...base, { key: "memory" as const, text: memory }].filter(({ text }) => text !== "")
  const text = joined(pieces.map((piece) => piece.text))
  // Only the real environment decides where a file is written.
  const kept = yield* keep(options, ownVariables, own, text)
  return { text, sections: pieces, notices: [...notices, ...unheeded, ...kept] }
})

/** The rules that a started agent gets after its own prompt: `agentRules` of the domain, with the user's switches. */
export const agentRules = Effect.fn("SystemPrompt.agentRules")(function* (
  options: Omit<Parameters<typeof domainRules>[0], "sandbox">
) {
  const environment = yield* Environment
  const variables = { ...environment.beneath?.variables, ...(yield* environment.variables) }
  return domainRules({
    ...options,
    sandbox: sandboxOf(variables["SANDBOX"]),
    toggles: { ...options.toggles, ...togglesOf(variables).toggles }
  })
})
