import { assert, describe, it } from "@effect/vitest"
import { settledBy } from "../../../../src/domain/compression/evidence/Agreements.ts"

const options = `Three ways to do it:

1. **Move the parser** to \`core/\`: no import cycle, two files change
2. **Inject it** from the command:
   callers pass a function
3. Leave it

I would take the first. Which one do you prefer?`

describe("what the user settled with a short reply", () => {
  it.each<readonly [reply: string, before: string, how: string, what: string]>([
    [
      "yes please",
      "Done. Want me to remove the unused `stageFiles()` as well?",
      "agreed to",
      "Want me to remove the unused `stageFiles()` as well?"
    ],
    [
      "Yep, go ahead",
      "The lock is held by the old daemon.\n\nShould I fix that?",
      "agreed to",
      "The lock is held by the old daemon. Should I fix that?"
    ],
    [
      "ok cool let's go",
      "Plan: rename first, then test.\n\n```ts\nconst a = 1\n```\n\nDoes this look right?",
      "agreed to",
      "Plan: rename first, then test. Does this look right?"
    ],
    [
      "no don't, let's see if it happens again",
      "Want me to set `gc.auto 0` in this repository now?",
      "declined",
      "Want me to set `gc.auto 0` in this repository now?"
    ],
    [
      "let's go with option 1. Also rename the file",
      options,
      "chose",
      "1. Move the parser to `core/`: no import cycle, two files change"
    ],
    ["2", options, "chose", "2. Inject it from the command: callers pass a function"],
    ["do 1 and 3", options, "chose", "1. Move the parser to `core/`: no import cycle, two files change · 3. Leave it"],
    [
      "I'd say approach B",
      "### Approach A: one table\n### Approach B: a table for each tenant, which is slower\n",
      "chose",
      "Approach B: a table for each tenant, which is slower"
    ],
    [
      "ja",
      "Soll ich die Migration mit den alten Daten ausführen und committen?",
      "agreed to",
      "Soll ich die Migration mit den alten Daten ausführen und committen?"
    ]
  ])("%s", (reply, before, how, what) => {
    assert.deepStrictEqual(settledBy(reply, before), { how, what })
  })

  it.each<readonly [reply: string, before: string]>([
    ["yes", "All tests pass now."],
    ["no, we removed it on purpose", "The command is gone. Which approach do you prefer?"],
    ["okay, the fix is pushed, let's update from the parent branch", "Want to go on with task 2?"],
    ["for option 1, is there still a cycle?", options],
    ["yes", "The plan is:\n\n```ts\nconst a = 1\n```\n\nDoes this look right?"],
    ["yesterday's build was red", "Should I look at the build?"],
    ["yes", ""],
    [`yes ${"and then more words ".repeat(10)}`, "Should I?"]
  ])("nothing: %s", (reply, before) => {
    assert.isUndefined(settledBy(reply, before))
  })
})
