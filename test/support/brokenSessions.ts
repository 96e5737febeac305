/** Ways in which a session file of Claude Code breaks. */

const image = "A".repeat(3_000_000)

const uuidOf = (line: string): string => /"uuid":"([^"]+)"/.exec(line)?.[1] ?? ""
const withParent = (line: string, parent: string): string =>
  line.replace(/"parentUuid":(?:"[^"]*"|null)/, `"parentUuid":"${parent}"`)

const withImage = (last: string): string => {
  const record: Record<string, unknown> = JSON.parse(last)
  const source = { type: "base64", media_type: "image/png", data: image }
  return JSON.stringify({
    ...record,
    type: "user",
    uuid: "11111111-1111-4111-8111-111111111111",
    parentUuid: uuidOf(last),
    message: { role: "user", content: [{ type: "image", source }] }
  })
}

/** By name: the lines of a session to the text of a broken one. */
export const breaks: Readonly<Record<string, (lines: ReadonlyArray<string>) => string>> = {
  "as it was recorded": (all) => all.join("\n"),
  "cut in the middle of a line": (all) => all.join("\n").slice(0, -500),
  "with lines twice": (all) => all.flatMap((line, at) => (at % 7 === 0 ? [line, line] : [line])).join("\n"),
  "with lines that are no JSON": (all) => all.map((line, at) => (at % 11 === 3 ? line.slice(0, 40) : line)).join("\n"),
  "without every ninth record": (all) => all.filter((_, at) => at % 9 !== 4).join("\n"),
  "with a parent that is its own child": (all) =>
    all.map((line, at) => (at === 10 ? withParent(line, uuidOf(line)) : line)).join("\n"),
  "with an image of 3 MB": (all) => [...all, withImage(all.at(-1) ?? "{}")].join("\n")
}
