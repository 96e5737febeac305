import { assert, it } from "@effect/vitest"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import type { Entry } from "../../../src/domain/conversation/Conversation.ts"
import { namesBelow, programsOf } from "../../../src/domain/evaluation/RecordedNames.ts"
import { cachedEqualsFresh } from "../../support/caches.ts"
import { entriesOf } from "../../support/entries.ts"

it.each([
  ["run_shell_command", { command: "terraform plan && cat a.txt" }, ["terraform"]],
  ["exec_command", { cmd: "CI=1 terraform apply | jq ." }, ["terraform", "jq"]],
  ["Bash", { command: "(kubectl get pods; helm list)" }, ["kubectl", "helm"]],
  ["read_file", { command: "terraform plan" }, []],
  ["shell", { command: ["terraform", "plan"] }, ["terraform"]],
  ["shell", "terraform plan", []]
] as const)("a call of %s with %j runs %j", (name, args, programs) => {
  assert.deepStrictEqual(programsOf(call(name, args, "c1")), [...programs])
})

it("the names of an entry are relative to the folders asked for, whatever was asked before", () => {
  const log = () =>
    entriesOf([
      user(text("Mend /work/app/src/Parse.ts and /home/me/notes/Plan.md.")),
      model(call("exec_command", { cmd: "terraform plan" }, "c1")),
      user(response("exec_command", { output: "done" }, "c1")),
      model(text("I mended /work/app/src/Parse.ts as /home/me/notes/Plan.md says, with terraform.")),
      user(text("Thanks.")),
      model(text("Parse.ts is done: src/Parse.ts."))
    ])
  const names = (roots: ReadonlyArray<string>) => (entries: ReadonlyArray<Entry>) => entries.map(namesBelow(roots))
  cachedEqualsFresh(log, {
    "no folder": names([]),
    "the project": names(["/work/app"]),
    "the project and the notes": names(["/work/app", "/home/me"])
  })
  const answer = names(["/work/app", "/home/me"])(log())[3]
  assert.deepStrictEqual([...(answer?.written.keys() ?? [])], ["src/Parse.ts", "notes/Plan.md"])
  assert.deepStrictEqual(names(["/work/app"])(log())[1]?.all, ["terraform"])
})
