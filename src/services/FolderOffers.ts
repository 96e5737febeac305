import { ByteSize, Effect, FileSystem, Option, Path, Predicate, Result } from "effect"
import { decode } from "../domain/Bytes.ts"
import { hooksOf, hookText } from "../domain/HookSettings.ts"
import { defaults } from "../domain/Settings.ts"
import { jsonOf } from "../domain/SettingsText.ts"
import { skillFile } from "../domain/Skill.ts"

/** What would be taken from a folder if it were trusted: for a person to look at before they say so. */

/** What kind of thing it is. */
export type OfferKind = "settings" | "unreadable" | "hooks" | "variables" | "memory" | "agents" | "skills"

/** One thing that lies in a folder. */
export interface Offer {
  readonly kind: OfferKind
  /** Relative to the folder. */
  readonly file: string
  /** What is in it by name, where it holds several: agents, skills, hooks with their events and commands. */
  readonly names: ReadonlyArray<string>
}

/** Names that are shown of one kind, and the size of a file that is looked into. */
const mostNames = 100
const mostBytes = ByteSize.mebibytes(1)

/** The hooks of a text of settings, read as they are read before they run; undefined: it is none. */
const hooksIn = (text: string): ReadonlyArray<string> | undefined => {
  const json = jsonOf(text)
  if (Result.isFailure(json)) return undefined
  const { hooks } = json.success
  return Predicate.isObject(hooks)
    ? hooksOf({ ...hooks }, "workspace")
        .hooks.slice(0, mostNames)
        .map(hookText)
    : []
}

/** Everything in a folder that trust decides about; nothing of it is opened but the settings, to see whether they run commands. */
export const offersOf = Effect.fn("FolderOffers.of")(function* (
  folder: string,
  memory: ReadonlyArray<string> = defaults.memory.fileNames
): Effect.fn.Return<ReadonlyArray<Offer>, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const at = (file: string) => path.join(folder, file)
  const info = (file: string) => Effect.map(Effect.option(fs.stat(at(file))), Option.getOrUndefined)
  const isFile = (file: string) => Effect.map(info(file), (found) => found?.type === "File")
  const namesIn = (file: string) =>
    Effect.map(
      Effect.orElseSucceed(fs.readDirectory(at(file)), (): ReadonlyArray<string> => []),
      (names) => names.toSorted().slice(0, mostNames)
    )

  const offers: Array<Offer> = []
  const offer = (kind: OfferKind, file: string, names: ReadonlyArray<string> = []) => offers.push({ kind, file, names })

  const settings = ".palimpsest/settings.json"
  const found = yield* info(settings)
  if (found?.type === "File") {
    const bytes = ByteSize.isLessThanOrEqualTo(found.size, mostBytes)
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

/** Names that one line has room for; of commands more, as each of them counts. */
const shownNames = 8
const shownHooks = 20

const shortened = (names: ReadonlyArray<string>, most: number): string => {
  const more = names.length - most
  const shown = more > 0 ? [...names.slice(0, most), `and ${more} more`] : names
  return shown.length === 0 ? "" : ` (${shown.join(", ")})`
}

/** One line about a thing that lies there: `hooks, which run commands: .palimpsest/settings.json (AfterTool: "./lint.sh")`. */
export const offerText = ({ file, kind, names }: Offer): string =>
  `${meanings[kind]}: ${file}${shortened(names, kind === "hooks" ? shownHooks : shownNames)}`
