/** Reads skills from folders of the user and of the workspace. */

import { Effect, FileSystem, Layer, Path, Result } from "effect"
import { parseSkill, type SkillFile, skillFile } from "../../domain/agent/Skill.ts"
import { isMissingPath } from "../../domain/text/DiskErrors.ts"
import { type ActiveSkill, type Skill, Skills } from "../../services/tools/Skills.ts"
import { type DefinitionFolder, type DefinitionReader, reader, unusable } from "../agent/DefinitionFolders.ts"

/** Maximum number of listed files of a skill's folder, and maximum depth of the listing. */
const maxListedFiles = 200
const maxFolderDepth = 8
/** Folders whose files are never listed. */
const skippedFolders = new Set(["node_modules", ".git"])

/** The folders of skills, and how they are read. */
interface SkillShelf {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  /** Highest precedence first. */
  readonly places: ReadonlyArray<DefinitionFolder>
  readonly reader: DefinitionReader
}

/** Reads a folder's skill. Undefined when the folder is no skill. */
const readSkill = Effect.fnUntraced(
  function* ({ path, reader: { textOf } }: SkillShelf, folder: string, isOwn: boolean) {
    const file = path.join(folder, skillFile)
    const text = yield* textOf(file, isOwn)
    const parsed = text === undefined ? Result.fail("expected a file") : parseSkill(text)
    const content = yield* Effect.mapError(Effect.fromResult(parsed), (reason) => ({ file, reason }))
    return { skill: { name: content.name, description: content.description, folder }, content }
  },
  (work, { path }, folder) =>
    work.pipe(
      Effect.catchIf(
        (error) => "_tag" in error && isMissingPath(error),
        () => Effect.undefined
      ),
      Effect.catch((error) => Effect.succeed(unusable(path.join(folder, skillFile))(error)))
    )
)

/** Reads the skills of one folder. */
const skillsIn = Effect.fnUntraced(
  function* (shelf: SkillShelf, place: DefinitionFolder) {
    const names = yield* shelf.reader.namesIn(place)
    return yield* Effect.forEach(names, (name) => readSkill(shelf, shelf.path.join(place.folder, name), place.isOwn), {
      concurrency: 8
    })
  },
  Effect.catch((problem) => Effect.succeed([problem]))
)

/** All skills by name, and what cannot be used. */
const find = Effect.fnUntraced(function* (shelf: SkillShelf) {
  const found = (yield* Effect.forEach(shelf.places, (place) => skillsIn(shelf, place))).flat()
  const skills = new Map<string, { readonly skill: Skill; readonly content: SkillFile }>()
  for (const one of found) {
    if (one !== undefined && "skill" in one && !skills.has(one.skill.name)) skills.set(one.skill.name, one)
  }
  return { skills, problems: found.filter((one) => one !== undefined && "reason" in one) }
})

/** Lists the files below a folder level by level, so that the deepest ones are left out first. */
const filesOf = Effect.fnUntraced(function* ({ fs, path }: SkillShelf, folder: string) {
  const files: Array<string> = []
  let level: ReadonlyArray<string> = [""]
  for (let depth = 0; depth < maxFolderDepth && level.length > 0 && files.length <= maxListedFiles; depth += 1) {
    const next: Array<string> = []
    for (const below of level) {
      const names = yield* fs
        .readDirectory(path.join(folder, below))
        .pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))
      for (const name of names.toSorted()) {
        if (files.length > maxListedFiles) break
        const here = below === "" ? name : `${below}/${name}`
        const place = path.join(folder, here)
        // Does not follow links: they may form cycles or lead anywhere.
        const type = yield* fs.lstat(place).pipe(
          Effect.map((info) => info.type),
          Effect.orElseSucceed(() => undefined)
        )
        if (type === "File" && here !== skillFile) files.push(here)
        if (type === "Directory" && !skippedFolders.has(name)) next.push(here)
      }
    }
    level = next
  }
  return { files: files.slice(0, maxListedFiles), hasMore: files.length > maxListedFiles }
})

const all = Effect.fn("Skills.all")(function* (shelf: SkillShelf) {
  const { problems, skills } = yield* find(shelf)
  return {
    problems,
    skills: [...skills.values()].map(({ skill }) => skill).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }
})

const load = Effect.fn("Skills.load")(function* (shelf: SkillShelf, name: string) {
  const found = (yield* find(shelf)).skills.get(name)
  if (found === undefined) return undefined
  const { content, skill } = found
  return {
    ...skill,
    instructions: content.instructions,
    ...(yield* filesOf(shelf, skill.folder))
  } satisfies ActiveSkill
})

/**
 * The skills in these folders; of two with the same name the later folder's counts. They are read on request; a broken
 * one does not affect the others. A skill outside the user's own folders counts only if the folders that really contain it are trusted, because a link may lead to another folder.
 */
export const layer = (places: ReadonlyArray<DefinitionFolder>, isTrusted: (folder: string) => Effect.Effect<boolean>) =>
  Layer.effect(
    Skills,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const shelf: SkillShelf = { fs, path, places: places.toReversed(), reader: yield* reader(isTrusted) }
      return { all: all(shelf), load: (name) => load(shelf, name) }
    })
  )
