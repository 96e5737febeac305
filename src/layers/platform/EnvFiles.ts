/** Finds and reads the `.env` file of a trusted folder or of the user. */

import { ByteSize, Config, ConfigProvider, Effect, FileSystem, Layer, Option, Path, Result } from "effect"
import { homedir } from "node:os"
import { env } from "node:process"
import { keyVariables } from "../../domain/model/ModelRoute.ts"
import {
  acceptedVariables,
  endpointProblem,
  endpointVariable,
  type EnvFileOwner,
  parseDotEnv,
  promptVariable,
  rejectedVariables,
  secretValues
} from "../../domain/settings/DotEnv.ts"
import { decode } from "../../domain/text/Bytes.ts"
import { diskErrorText, isMissingPath } from "../../domain/text/DiskErrors.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import { EnvFiles } from "../../services/platform/Environment.ts"
import { inspect, read } from "../../services/platform/RegularFile.ts"
import { Trust, withParents } from "../../services/workspace/Trust.ts"

/** The largest `.env` file that is read. */
const maxFileBytes = ByteSize.kibibytes(64)

/** Where files are searched. */
interface EnvFilesOptions {
  /** The home folder of this program. */
  readonly home: string
  /** The user's own folder; `GEMINI_CLI_HOME` replaces it. */
  readonly user?: string
  readonly workspace?: string
}

/** A blank value counts as not set: the working folder must not pass for the user's own. */
const ownFolder = (): string => {
  const folder = env["GEMINI_CLI_HOME"]?.trim()
  return folder === undefined || folder === "" ? homedir() : folder
}

/** A possible location of a file. */
interface EnvFilePlace {
  readonly file: string
  /** The folder that has to be trusted; undefined for the user's own. */
  readonly folder: string | undefined
  readonly owner: EnvFileOwner
}

/** Whether the environment itself sets a variable. */
const isSet = (name: string) =>
  Config.option(Config.String(name)).pipe(
    Effect.map((value) => Option.isSome(value) && value.value.trim() !== ""),
    Effect.orElseSucceed(() => false)
  )

const without = (variables: Readonly<Record<string, string>>, name: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(variables).filter(([one]) => one !== name))

/** An address without its possible secrets. */
const addressOf = (text: string): string => (URL.canParse(text) ? new URL(text).origin : "an invalid address")

const places = Effect.fnUntraced(function* ({ home, user, workspace }: Required<EnvFilesOptions>) {
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const real = (folder: string) => Effect.orElseSucceed(fs.realPath(folder), () => path.resolve(folder))
  const own = yield* real(user)
  const chain = withParents(yield* real(workspace), path.dirname)
  const below = chain.includes(own) ? chain.slice(0, chain.indexOf(own)) : chain
  const at = (folder: string | undefined, owner: EnvFileOwner, ...parts: ReadonlyArray<string>): EnvFilePlace => ({
    file: path.join(...parts),
    folder,
    owner
  })
  return [
    ...below.flatMap((folder) => [
      at(folder, "folder", folder, ".palimpsest", ".env"),
      at(folder, "folder", folder, ".gemini", ".env"),
      at(folder, "project", folder, ".env")
    ]),
    at(undefined, "person", path.resolve(home), ".env"),
    at(undefined, "person", own, ".gemini", ".env"),
    at(undefined, "person", own, ".env")
  ]
})

/** The state of a search for the `.env` file, with the notices for the user. */
interface Search {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly trust: Trust["Service"]
  readonly workspace: string
  readonly untrusted: Array<string>
  readonly notices: Array<string>
}

const trustOf = ({ notices, trust }: Search, folder: string) =>
  trust.of(folder).pipe(
    Effect.catch(({ message }) => {
      if (!notices.includes(message)) notices.push(message)
      return Effect.succeed("unknown" as const)
    })
  )

/** Whether a file named by a folder's `.env` file is in that folder, and in no part of it that the user distrusts. */
const isInside = Effect.fnUntraced(function* (search: Search, folder: string, name: string) {
  const { fs, path } = search
  const workspace = yield* Effect.orElseSucceed(fs.realPath(search.workspace), () => search.workspace)
  const place = path.resolve(workspace, name.trim())
  const real = yield* Effect.orElseSucceed(fs.realPath(place), () => place)
  if (/^\s*~/.test(name) || !isWithin(folder, real, path.sep)) return false
  return (yield* trustOf(search, path.dirname(real))) !== "untrusted"
})

/**
 * Selects the variables that a folder's file may set. An address counts only together with a key of its own, so that the user's key is
 * never sent to an address that a folder chose; a prompt counts only from its own folder.
 */
const permittedVariables = Effect.fnUntraced(function* (
  search: Search,
  folder: string,
  file: string,
  variables: Readonly<Record<string, string>>
) {
  const { notices } = search
  const shown = quotedPath(file)
  let kept = variables
  const leaveOut = (name: string, why: string) => {
    kept = without(kept, name)
    notices.push(`${shown}: ${name} is ignored: ${why}; set it in the environment to use it`)
  }
  const endpoint = kept[endpointVariable]
  if (endpoint !== undefined) {
    const problem = endpointProblem(kept, yield* Effect.filter(keyVariables.google, isSet))
    if (problem !== undefined) leaveOut(endpointVariable, problem)
    else if (!(yield* isSet(endpointVariable))) {
      notices.push(`the model is asked at ${addressOf(endpoint)}, as ${endpointVariable} in ${shown} says`)
    }
  }
  const prompt = kept[promptVariable]
  if (prompt !== undefined && !(yield* isInside(search, folder, prompt))) {
    leaveOut(promptVariable, `it leads out of ${quotedPath(folder)}`)
  }
  return kept
})

/** Whether a file in a folder may be read. A link may lead from a trusted folder to one that the user distrusts. */
const isTrusted = Effect.fnUntraced(function* (search: Search, folder: string, real: string) {
  return (
    (yield* trustOf(search, folder)) === "trusted" &&
    (yield* trustOf(search, search.path.dirname(real))) !== "untrusted"
  )
})

/** The text of a file, or why it is left out. `place` is its real path. */
const readText = Effect.fnUntraced(
  function* (file: string, place: string) {
    const shown = quotedPath(file)
    const { size } = yield* inspect(place, shown)
    if (ByteSize.isGreaterThan(size, maxFileBytes)) return Result.fail(`${shown} has more than 64 KiB; it is ignored`)
    const { text, valid } = decode(yield* read(place, shown))
    return valid ? Result.succeed(text) : Result.fail(`${shown} is not UTF-8 text; it is ignored`)
  },
  Effect.catch(({ message }) => Effect.succeed(Result.fail(`${message}; it is ignored`)))
)

/** The variables of a file; undefined when it cannot be read. */
const readFile = Effect.fnUntraced(function* (search: Search, { file, folder, owner }: EnvFilePlace) {
  const { fs, notices, untrusted } = search
  const place = yield* fs.realPath(file).pipe(
    Effect.catchIf(isMissingPath, () => Effect.undefined),
    Effect.catch((error) => Effect.sync(() => void notices.push(`${diskErrorText(error)}; it is ignored`)))
  )
  if (place === undefined) return undefined
  if (folder !== undefined && !(yield* isTrusted(search, folder, place))) {
    untrusted.push(file)
    return undefined
  }
  const text = yield* readText(file, place)
  if (Result.isFailure(text)) {
    notices.push(text.failure)
    return undefined
  }
  const parsed = parseDotEnv(text.success)
  const refused = rejectedVariables(parsed, owner)
  const shown = quotedPath(file)
  if (refused.length > 0) notices.push(`${shown}: ${refused.join(", ")} cannot be set in such a file`)
  const accepted = acceptedVariables(parsed, owner)
  const variables = folder === undefined ? accepted : yield* permittedVariables(search, folder, file, accepted)
  if (Object.keys(variables).length === 0) return undefined
  const [first, ...more] = parsed.problems
  if (first !== undefined) {
    const others = more.length === 0 ? "the line is ignored" : `this line and ${more.length} more are ignored`
    notices.push(`${shown}, line ${first.line}: ${first.text}; ${others}`)
  }
  return variables
})

const find = Effect.fnUntraced(function* (options: Required<EnvFilesOptions>) {
  const untrusted: Array<string> = []
  const notices: Array<string> = []
  const search: Search = {
    fs: yield* FileSystem.FileSystem,
    path: yield* Path.Path,
    trust: yield* Trust,
    workspace: options.workspace,
    untrusted,
    notices
  }
  for (const place of yield* places(options)) {
    const variables = yield* readFile(search, place)
    if (variables === undefined) continue
    const { file, folder } = place
    return { file, folder, variables, hidden: secretValues(variables), untrusted, notices }
  }
  return { file: undefined, folder: undefined, variables: {}, hidden: [], untrusted, notices }
})

/**
 * Reads the first `.env` file with variables for this program: from the working folder upward `.palimpsest/.env`,
 * `.gemini/.env` and `.env` of each folder that is trusted, then those of this program's home and of the user's.
 * The environment overrides it. A folder's file may set little, and never the file or address to which the user's own data
 * goes. Files are read when the layer is built; it never fails.
 */
export const layer = ({
  home,
  user = ownFolder(),
  workspace = "."
}: EnvFilesOptions): Layer.Layer<EnvFiles, never, FileSystem.FileSystem | Path.Path | Trust> =>
  ConfigProvider.layerAdd(Effect.map(EnvFiles, ({ variables }) => ConfigProvider.fromEnvRecord({ ...variables }))).pipe(
    Layer.provideMerge(Layer.effect(EnvFiles, find({ home, user, workspace })))
  )
