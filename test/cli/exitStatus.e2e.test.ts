import { assert, it } from "../support/vitest.ts"
import { example } from "./program.ts"
import { place, runs } from "./scene.ts"

/** A command ends with the same status with and without `--json`, whatever comes of it. */

const rows: ReadonlyArray<readonly [status: number, args: ReadonlyArray<string>]> = [
  [0, ["inspect", example]],
  [2, ["inspect", "missing"]],
  [0, ["compress", example, "--force", "--summarizer", "extractive"]],
  [0, ["compress", example, "--summarizer", "extractive"]],
  [2, ["compress", "missing"]],
  [0, ["cost"]],
  [0, ["cost", example]],
  [2, ["cost", "missing"]],
  [0, ["find"]],
  [1, ["find", "nothing like this"]],
  [0, ["secrets"]],
  [0, ["secrets", example]],
  [2, ["secrets", "missing"]],
  [0, ["rescue", example]],
  [2, ["rescue", "missing"]],
  [0, ["resume", example, "--in", "codex"]],
  [2, ["resume", "missing", "--in", "codex"]],
  [0, ["replay", example, "--window", "20k"]],
  [2, ["replay", example, "--window", "500"]],
  [2, ["replay", "missing", "--window", "20k"]],
  [2, ["eval", "missing"]],
  [1, ["ask", "why?"]],
  [2, ["ask", "why?", "--model", "foo/bar"]],
  [2, ["ask", "why?", "--resume", "missing"]],
  [0, ["sessions", "list"]],
  [2, ["sessions", "show", "missing"]],
  [2, ["sessions", "tree", "missing"]],
  [0, ["memory", "show"]],
  [0, ["agents", "list"]],
  [2, ["agents", "show", "missing"]],
  [0, ["config", "list"]],
  [0, ["config", "doctor"]],
  [0, ["config", "get", "model"]],
  [2, ["config", "get", "missing"]],
  [0, ["trust", "--list"]],
  [0, ["prompt"]]
]

it.live.each(rows)("the exit status is %s for %j, also with --json", function* ([status, args]) {
  const where = yield* place(`status-${rows.findIndex(([, other]) => other === args)}`)
  const text = yield* runs(where, undefined, args)
  const json = yield* runs(where, undefined, [...args, "--json"])
  assert.deepStrictEqual([text.status, json.status], [status, status], `${text.stderr}${json.stderr}`)
  // What is printed is one document, or nothing but the reason on stderr.
  if (json.stdout.length > 0) JSON.parse(String(json.stdout))
  else assert.notStrictEqual(json.status, 0)
})
