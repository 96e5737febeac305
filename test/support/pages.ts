import { globSync, readFileSync } from "node:fs"
import path from "node:path"
import { root } from "./paths.ts"

/** The pages of the project: README, the pages beside it, the manual, and the readme of the library's examples. */
export const pages: ReadonlyArray<{ readonly name: string; readonly text: string }> = [
  ...globSync("{README,ARCHITECTURE,CONTRIBUTING,AGENTS,CHANGELOG}.md", { cwd: root }),
  ...globSync("docs/*.md", { cwd: root }),
  "examples/library/README.md"
]
  .map((name) => name.replaceAll("\\", "/"))
  .sort()
  .map((name) => ({ name, text: readFileSync(path.join(root, name), "utf8") }))

/** The fenced blocks of a page with this info string. */
export const blocks = (page: string, info: string): ReadonlyArray<string> =>
  [...page.matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)].flatMap(([, language, block = ""]) =>
    language === info ? [block] : []
  )

/** The commands of a page's console blocks with the lines shown under each. */
export const commandsOn = (page: string) =>
  blocks(page, "console").flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((piece) => {
        const [command = "", ...lines] = piece.trimEnd().split("\n")
        return { command, lines }
      })
  )
