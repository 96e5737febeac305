import { ByteSize, Effect, FileSystem, Option, Path } from "effect"
import { decode } from "../domain/Bytes.ts"
import { defaults } from "../domain/Settings.ts"
import { skillFile } from "../domain/Skill.ts"

/** What would be taken from a folder if it were trusted: for a person to look at before they say so. */

/** What kind of thing it is. */
export type OfferKind = "settings" | "hooks" | "variables" | "memory" | "agents" | "skills"

/** One thing that lies in a folder. */
export interface Offer {
  readonly kind: OfferKind
  /** Relative to the folder. */
  readonly file: string
  /** What is in it by name, where it holds several: agents, skills, events of hooks. */
  readonly names: ReadonlyArray<string>
}

/** Names that are shown of one kind, and the size of a file that is looked into. */
const mostNames = 100
const mostBytes = ByteSize.mebibytes(1)

/** The events a file of settings names hooks for. It may be anything: what only looks like it counts too. */
const hookEvents = (text: string): ReadonlyArray<string> => {
  const from = text.search(/"hooks"\s*:\s*\{/)
  if (from < 0) return []
  const names = text.slice(from).matchAll(/"((?:Before|After|Session|Notification|Pre|Post)\w{0,30})"\s*:\s*\[/g)
  return [...new Set([...names].map(([, name = ""]) => name))].slice(0, mostNames)
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
    offer("settings", settings)
    if (ByteSize.isLessThanOrEqualTo(found.size, mostBytes)) {
      const bytes = yield* Effect.option(fs.readFile(at(settings)))
      const events = Option.isSome(bytes) ? hookEvents(decode(bytes.value).text) : []
      if (events.length > 0) offer("hooks", settings, events)
    }
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
  hooks: "hooks, which run commands",
  variables: "variables, such as the address of the model",
  memory: "memory, which tells the model what to do",
  agents: "agents",
  skills: "skills"
}

/** Names that one line has room for. */
const shownNames = 8

const shortened = (names: ReadonlyArray<string>): string => {
  const more = names.length - shownNames
  const shown = more > 0 ? [...names.slice(0, shownNames), `and ${more} more`] : names
  return shown.length === 0 ? "" : ` (${shown.join(", ")})`
}

/** One line about a thing that lies there: `hooks, which run commands: .palimpsest/settings.json (AfterTool)`. */
export const offerText = ({ file, kind, names }: Offer): string => `${meanings[kind]}: ${file}${shortened(names)}`
