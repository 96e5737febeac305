/** Lists what trusting a folder would load, for the user to review first. */

import { ByteSize, Effect, FileSystem, Option, Path, Predicate, Result } from "effect"
import { skillFile } from "../../domain/agent/Skill.ts"
import { hooksOf, hookText } from "../../domain/hooks/HookSettings.ts"
import { defaults } from "../../domain/settings/Settings.ts"
import { jsonOf } from "../../domain/settings/SettingsText.ts"
import { decode } from "../../domain/text/Bytes.ts"

/** The kind of content. */
type OfferKind = "settings" | "unreadable" | "hooks" | "variables" | "memory" | "agents" | "skills"

/** One item that a folder offers. */
export interface Offer {
  readonly kind: OfferKind
  /** Relative to the folder. */
  readonly file: string
  /** The names of its contents where there are several: agents, skills, hooks with their events and commands. */
  readonly names: ReadonlyArray<string>
}

/** Most names collected of one kind, and the largest file examined. */
const maxNames = 100
const maxFileSize = ByteSize.mebibytes(1)

/** The hooks in a settings text, parsed as before running them; undefined when the text is invalid. */
const hooksIn = (text: string): ReadonlyArray<string> | undefined => {
  const json = jsonOf(text)
  if (Result.isFailure(json)) return undefined
  const { hooks } = json.success
  return Predicate.isObject(hooks)
    ? hooksOf({ ...hooks }, "workspace")
        .hooks.slice(0, maxNames)
        .map(hookText)
    : []
}

/** Everything in a folder that trust decides about. Only settings are opened, to see whether they run commands. */
export const offersOf = Effect.fn("FolderOffers.offersOf")(function* (
  folder: string,
  memory: ReadonlyArray<string> = defaults.memory.fileNames
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const at = (file: string) => path.join(folder, file)
  const info = (file: string) => Effect.map(Effect.option(fs.stat(at(file))), Option.getOrUndefined)
  const isFile = (file: string) => Effect.map(info(file), (entry) => entry?.type === "File")
  const namesIn = (file: string) =>
    Effect.map(
      Effect.orElseSucceed(fs.readDirectory(at(file)), (): ReadonlyArray<string> => []),
      (names) => names.toSorted().slice(0, maxNames)
    )

  const offers: Array<Offer> = []
  const offer = (kind: OfferKind, file: string, names: ReadonlyArray<string> = []) => offers.push({ kind, file, names })

  const settings = ".palimpsest/settings.json"
  const settingsInfo = yield* info(settings)
  if (settingsInfo?.type === "File") {
    const bytes = ByteSize.isLessThanOrEqualTo(settingsInfo.size, maxFileSize)
      ? yield* Effect.option(fs.readFile(at(settings)))
      : Option.none()
    const read = Option.map(bytes, decode)
    const hooks = Option.isSome(read) && read.value.valid ? hooksIn(read.value.text) : undefined
    offer(hooks === undefined ? "unreadable" : "settings", settings)
    if (hooks !== undefined && hooks.length > 0) offer("hooks", settings, hooks)
  }
  for (const file of [".palimpsest/.env", ".gemini/.env", ".env"]) if (yield* isFile(file)) offer("variables", file)
  for (const file of memory) if (yield* isFile(file)) offer("memory", file)
  for (const base of [".palimpsest", ".gemini"]) {
    const agents = (yield* namesIn(`${base}/agents`)).filter((name) => name.endsWith(".md"))
    if (agents.length > 0) offer("agents", `${base}/agents`, agents)
    const skills = yield* Effect.filter(yield* namesIn(`${base}/skills`), (name) =>
      isFile(`${base}/skills/${name}/${skillFile}`)
    )
    if (skills.length > 0) offer("skills", `${base}/skills`, skills)
  }
  return offers
})

const meanings: Readonly<Record<OfferKind, string>> = {
  settings: "settings",
  unreadable: "settings that cannot be read",
  hooks: "hooks, which run commands",
  variables: "variables, such as the address of the model",
  memory: "memory, which tells the model what to do",
  agents: "agents",
  skills: "skills"
}

/** Most names on one line; more for commands, since each of them counts. */
const maxShownNames = 8
const maxShownHooks = 20

const shortened = (names: ReadonlyArray<string>, maxShown: number): string => {
  const more = names.length - maxShown
  const shown = more > 0 ? [...names.slice(0, maxShown), `and ${more} more`] : names
  return shown.length === 0 ? "" : ` (${shown.join(", ")})`
}

/** One line about an item: `hooks, which run commands: .palimpsest/settings.json (AfterTool: "./lint.sh")`. */
export const offerText = ({ file, kind, names }: Offer): string =>
  `${meanings[kind]}: ${file}${shortened(names, kind === "hooks" ? maxShownHooks : maxShownNames)}`
