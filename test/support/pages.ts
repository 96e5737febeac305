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

export const withoutCode = (page: string) => page.replace(/^```[^]*?^```$/gm, "")

/** The anchors of a page, as GitHub makes them. */
export const anchorsOf = (page: string): ReadonlySet<string> => {
  const times = new Map<string, number>()
  return new Set(
    [...withoutCode(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => {
      const slug = heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-")
      const before = times.get(slug) ?? 0
      times.set(slug, before + 1)
      return before === 0 ? slug : `${slug}-${before}`
    })
  )
}

/** The links of a page: the path, empty within the page, and the anchor. */
export const linksOf = (page: string): ReadonlyArray<readonly [target: string, anchor: string | undefined]> =>
  [...withoutCode(page).matchAll(/\]\(([^)#:\s]*)(?:#([^)\s]+))?\)/g)].map(([, target = "", anchor]) => [
    target,
    anchor
  ])

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
