import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { unusableFileText } from "../../../src/domain/agent/UnusableFile.ts"
import { folders } from "../../../src/layers/agent/DefinitionFolders.ts"
import * as FileSkills from "../../../src/layers/tools/FileSkills.ts"
import { Skills } from "../../../src/services/tools/Skills.ts"
import { assert, layer } from "../../support/vitest.ts"

const skill = (name: string, description = `about ${name}`) =>
  `---\nname: ${name}\ndescription: ${description}\n---\nDo ${name}.\n`

/** Skills of a workspace and a home with these files. */
const withFiles = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string>>,
  isTrusted: (folder: string) => Effect.Effect<boolean> = () => Effect.succeed(true)
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const top = yield* fs.makeTempDirectoryScoped()
  for (const [name, text] of Object.entries(files)) {
    yield* fs.makeDirectory(path.dirname(path.join(top, name)), { recursive: true })
    yield* fs.writeFileString(path.join(top, name), text)
  }
  const places = yield* folders("skills", {
    home: path.join(top, "own"),
    workspace: path.join(top, "work"),
    user: path.join(top, "home")
  })
  const skills = yield* Effect.provide(Skills, FileSkills.layer(places, isTrusted))
  return { fs, path, top, skills }
})

layer(NodeServices.layer)("FileSkills", (it) => {
  it.effect("has none without folders, and reports nothing", function* () {
    const { skills } = yield* withFiles({})
    assert.deepStrictEqual(yield* skills.all, { skills: [], problems: [] })
    assert.strictEqual(yield* skills.load("x"), undefined)
  })

  it.effect(
    "loads skills of workspace and home; the user's own override, and .palimpsest precedes .gemini",
    function* () {
      const { skills } = yield* withFiles({
        "work/.palimpsest/skills/a/SKILL.md": skill("a", "of work"),
        "work/.gemini/skills/a/SKILL.md": skill("a", "not this"),
        "work/.gemini/skills/b/SKILL.md": skill("b", "of gemini"),
        "work/.palimpsest/skills/c/SKILL.md": skill("c", "not this"),
        "work/.palimpsest/skills/d/SKILL.md": skill("d", "not this"),
        "home/.gemini/skills/c/SKILL.md": skill("c", "nor this"),
        "home/.palimpsest/skills/c/SKILL.md": skill("c", "of home"),
        "home/.gemini/skills/d/SKILL.md": skill("d", "of gemini at home"),
        "home/.palimpsest/skills/e/SKILL.md": skill("e", "not this"),
        "own/skills/e/SKILL.md": skill("e", "of the program's home")
      })
      const all = yield* skills.all
      assert.deepStrictEqual(
        all.skills.map(({ description, name }) => [name, description]),
        [
          ["a", "of work"],
          ["b", "of gemini"],
          ["c", "of home"],
          ["d", "of gemini at home"],
          ["e", "of the program's home"]
        ]
      )
      assert.deepStrictEqual(all.problems, [])
    }
  )

  it.effect("reports a broken skill with what was expected, and loads the rest", function* () {
    const { skills } = yield* withFiles({
      "work/.gemini/skills/good/SKILL.md": skill("good"),
      "work/.gemini/skills/bad/SKILL.md": "# no front matter\n",
      "work/.gemini/skills/long/SKILL.md": skill("long") + "x".repeat(1024 * 1024),
      "work/.gemini/skills/folder/SKILL.md/x": "",
      "work/.gemini/skills/empty/README.md": "no skill",
      "work/.gemini/skills/README.md": "no folder"
    })
    const { problems, skills: found } = yield* skills.all
    assert.deepStrictEqual(
      found.map(({ name }) => name),
      ["good"]
    )
    const notices = problems.map(unusableFileText)
    assert.strictEqual(notices.length, 3)
    assert.match(notices[0] ?? "", /bad.SKILL\.md: expected front matter/)
    assert.match(notices[1] ?? "", /folder.SKILL\.md: expected a file/)
    assert.match(notices[2] ?? "", /long.SKILL\.md: expected at most 1 MiB/)
  })

  it.effect("does not follow a link into an untrusted folder, except the user's own", function* () {
    const { fs, path, skills, top } = yield* withFiles(
      {
        "work/.gemini/skills/good/SKILL.md": skill("good"),
        "work/.gemini/skills/linked/x": "",
        "bad/one/SKILL.md": skill("one"),
        "bad/.palimpsest/skills/two/SKILL.md": skill("two"),
        "bad/three/SKILL.md": skill("three"),
        "home/.gemini/skills/x": ""
      },
      (folder) => Effect.succeed(!/\/(?:bad|home)(?:\/|$)/.test(folder))
    )
    const at = (name: string) => path.join(top, name)
    yield* fs.symlink(at("bad/one"), at("work/.gemini/skills/one"))
    yield* fs.symlink(at("bad/.palimpsest"), at("work/.palimpsest"))
    yield* fs.symlink(at("bad/one/SKILL.md"), at("work/.gemini/skills/linked/SKILL.md"))
    yield* fs.symlink(at("bad/three"), at("home/.gemini/skills/three"))
    const { problems, skills: found } = yield* skills.all
    assert.deepStrictEqual(
      found.map(({ name }) => name),
      ["good", "three"]
    )
    const bad = yield* fs.realPath(at("bad"))
    assert.deepStrictEqual(
      problems.map(unusableFileText).toSorted(),
      [
        `${at("work/.gemini/skills/linked/SKILL.md")}: it is in ${bad}/one, which is not trusted; it is ignored`,
        `${at("work/.gemini/skills/one/SKILL.md")}: it is in ${bad}/one, which is not trusted; it is ignored`,
        `${at("work/.palimpsest/skills")}: it is in ${bad}/.palimpsest/skills, which is not trusted; it is ignored`
      ].toSorted()
    )
    assert.isUndefined(yield* skills.load("two"))
  })

  it.effect("loads a skill with its files: no links, no node_modules, within limits", function* () {
    const { fs, path, skills, top } = yield* withFiles({
      "work/.gemini/skills/a/SKILL.md": skill("a"),
      "work/.gemini/skills/a/scripts/run.sh": "",
      "work/.gemini/skills/a/z.txt": "",
      "work/.gemini/skills/a/node_modules/x.js": ""
    })
    const folder = path.join(top, "work", ".gemini", "skills", "a")
    yield* fs.symlink("/", path.join(folder, "root"))
    yield* fs.symlink(folder, path.join(folder, "round"))
    assert.deepStrictEqual(yield* skills.load("a"), {
      name: "a",
      description: "about a",
      folder,
      instructions: "Do a.",
      files: ["z.txt", "scripts/run.sh"],
      hasMore: false
    })
    for (let n = 0; n < 201; n += 1) yield* fs.writeFileString(path.join(folder, `f${n}`), "")
    const many = yield* skills.load("a")
    assert.strictEqual(many?.files.length, 200)
    assert.isTrue(many?.hasMore)
  })
})
