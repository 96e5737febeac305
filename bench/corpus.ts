/** Generates the same conversations in every run, of any length: prompts, tool calls, outputs of very different sizes. */

import { seededRandom } from "../src/domain/evaluation/SeededRandom.ts"

const words =
  "the request handler returns early when cache entry expired so parser keeps token offset and error path src service layer stream value config default timeout retry session window compress snapshot".split(
    " "
  )

/** Claude Code lines: `messages` messages of about `bytes` bytes in total. */
export const claudeLines = (messages: number, bytes: number): Array<string> => {
  const next = seededRandom(messages)
  const pick = () => words[Math.floor(next() * words.length)] ?? "the"
  const sentence = (n: number) => Array.from({ length: n }, pick).join(" ")
  const file = () => `src/${pick()}/${pick()}${Math.floor(next() * 400)}.ts`
  const code = (length: number) => {
    const lines: Array<string> = []
    for (let size = 0; size < length;) {
      const line = `  const ${pick()}${Math.floor(next() * 100)} = yield* ${pick()}_${pick()}(${Math.floor(next() * 1e6)}) // ${sentence(5)}`
      lines.push(line)
      size += line.length + 1
    }
    return lines.join("\n")
  }
  const perPair = (2 * bytes) / messages
  const lines: Array<string> = []
  let parent: string | null = null
  const push = (value: Record<string, unknown>) => {
    const uuid = `00000000-0000-4000-8000-${String(lines.length).padStart(12, "0")}`
    lines.push(
      JSON.stringify({
        parentUuid: parent,
        isSidechain: false,
        sessionId: "00000000-0000-4000-8000-ffffffffffff",
        cwd: "/home/someone/project",
        version: "2.1.39",
        uuid,
        timestamp: new Date(1_760_000_000_000 + lines.length * 1_000).toISOString(),
        ...value
      })
    )
    parent = uuid
  }
  while (lines.length < messages) {
    if (lines.length % 40 === 0) {
      push({
        type: "user",
        message: { role: "user", content: `Please ${sentence(12)} in ${file()}, and never ${sentence(6)}.` }
      })
      continue
    }
    const id = `toolu_${lines.length}`
    const path = file()
    const [name, input] =
      next() < 0.4
        ? ["Read", { file_path: path }]
        : next() < 0.5
          ? ["Bash", { command: `npm test -- ${path}` }]
          : ["Edit", { file_path: path, old_string: code(200), new_string: code(260) }]
    push({
      type: "assistant",
      message: {
        id: `msg_${lines.length}`,
        role: "assistant",
        model: "some-model",
        content: [{ type: "tool_use", id, name, input }]
      }
    })
    // Most outputs are small and a few are large; their mean is the requested size.
    const size = Math.max(40, (perPair - 700) * (next() < 0.1 ? 6 : 0.45))
    push({
      type: "user",
      message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: code(size) }] }
    })
  }
  return lines
}
