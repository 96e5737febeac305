import { assert, describe, it } from "@effect/vitest"
import { settledBy } from "../../../../src/domain/compression/evidence/Agreements.ts"
import { gatherEvidence } from "../../../../src/domain/compression/evidence/Evidence.ts"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { entriesOf } from "../../../support/entries.ts"

const options = `Three ways to do it:

1. **Move the parser** to \`core/\`: no import cycle, two files change
2. **Inject it** from the command:
   callers pass a function
3. Leave it

I would take the first. Which one do you prefer?`

const proposal = "Should I delete the old migration files and write the schema from scratch?"

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
    ["the second one", options, "chose", "2. Inject it from the command: callers pass a function"],
    ["Let's go with the third option.", options, "chose", "3. Leave it"],
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
    ],
    ["yes", `Should I ${"really ".repeat(40)}do it?`, "agreed to", `Should I ${"really ".repeat(33).trim()}…`],
    ["opción 3, por favor", options, "chose", "3. Leave it"],
    ["选3", options, "chose", "3. Leave it"],
    ["3番", options, "chose", "3. Leave it"],
    ["好的", "测试都通过了。要我删除旧的迁移文件吗?", "agreed to", "要我删除旧的迁移文件吗?"],
    // Full-width signs, spelled as escapes because they look like those of ASCII.
    [
      "\u597d\uff01",
      "\u6d4b\u8bd5\u901a\u8fc7\u4e86\u3002\u8981\u6211\u5220\u9664\u5417\uff1f",
      "agreed to",
      "\u8981\u6211\u5220\u9664\u5417\uff1f"
    ],
    ["1\uff0c3", options, "chose", "1. Move the parser to `core/`: no import cycle, two files change · 3. Leave it"],
    ["\u4e0d\uff0c\u5148\u522b", proposal, "declined", proposal],
    ...["y", "yes, no problem", "Sure, thanks", "👍🏽", "sí, por favor", "да, давай", "はい、お願いします", "네"].map(
      (reply) => [reply, proposal, "agreed to", proposal] as const
    ),
    ...["n", "ok no", "no, thanks", "please don't", "nö", "não", "нет", "不要", "いいえ"].map(
      (reply) => [reply, proposal, "declined", proposal] as const
    )
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
    ["\u597d\uff1f", proposal],
    ["2", "Found:\n\n1. a leak\n2. a race\n\nHow many retries should the client have?"],
    ["yes", "Should I delete the old migration files, or do you want to look at them first?"],
    ["ja", "Welche der beiden Migrationen soll ich mit den alten Daten ausführen?"],
    ...[
      "yes, but not the migrations",
      "yes and no",
      "yes, cancel that",
      "okay, stop",
      "do it later",
      "correct me if I'm wrong, that is dangerous",
      "sure about that? I don't think so",
      "exactly what I feared",
      "absolutely not",
      "sure, but first run the tests",
      "no problem, go ahead",
      "no, wait, yes go ahead",
      "no need to ask, just do it",
      "Don't forget the tests, yes",
      "Ja, das geht nicht",
      "oui mais pas maintenant",
      "si tu veux",
      "да, но не сейчас",
      "好像不行",
      "可以,但是先备份",
      "はい、でも後で"
    ].map((reply) => [reply, proposal] as const),
    ...[
      "not option 2",
      "not the second one",
      "don't do 2",
      "option 2 is bad",
      "I don't like option 2, take 1",
      "1 or 2",
      "1, 2 and 7",
      "wait for 2 minutes",
      "do 3 tests first",
      "with 2 spaces please",
      "不要2",
      "не 2"
    ].map((reply) => [reply, options] as const),
    [`好的,${"把数据库也迁移".repeat(50)}`, proposal],
    [`yes ${"and then more words ".repeat(10)}`, "Should I?"]
  ])("nothing: %s", (reply, before) => {
    assert.isUndefined(settledBy(reply, before))
  })
})

describe("a reply settles what the agent asked last", () => {
  const asked = model(text(proposal))
  const yes = user(text("yes"))
  const works = [model(call("read_file", { path: "a.ts" }, "c1")), user(response("read_file", { output: "" }, "c1"))]
  it.each([
    ["at once", [asked, yes], 1],
    ["not where the agent went on to work", [asked, ...works, yes], 0],
    ["not where the user said more since", [asked, user(text("Look at the schema too.")), yes], 0],
    ["not what it only thought", [model({ text: proposal, thought: true }), yes], 0]
  ])("%s", (_, contents, count) => {
    const entries = entriesOf([user(text("Tidy up the schema.")), ...contents])
    assert.lengthOf(Work.runSync(gatherEvidence(entries)).settled, count)
    assert.lengthOf(Work.runSync(gatherEvidence([], { earlier: entries })).settled, count)
  })
})
