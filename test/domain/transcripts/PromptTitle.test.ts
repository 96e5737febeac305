import { assert, it } from "@effect/vitest"
import { promptHeading } from "../../../src/domain/transcripts/PromptTitle.ts"

it.each([
  ["Port the selector.", "Port the selector."],
  ["<command-name>/review</command-name>\n<command-args></command-args>", "/review"],
  [
    "<command-message>tea</command-message>\n<command-name>/tea</command-name>\n<command-args>a | b</command-args>",
    "/tea a | b"
  ],
  ["<command-name>/tea</command-name>\n<command-args>where a < b, of <T></command-args>", "/tea where a < b, of <T>"],
  ["<bash-input>ls -l</bash-input>", "!ls -l"],
  ["<bash-input>sort <in >out</bash-input>", "!sort <in >out"],
  ["Why is this in my log?\n<command-name>/x</command-name>", "Why is this in my log? <command-name>/x</command-name>"],
  ["<command-name></command-name>", "<command-name></command-name>"],
  ["What does `<command-name>/x</command-name>` mean?", "What does `<command-name>/x</command-name>` mean?"],
  ["<command-message> clear </command-message>", "/clear"],
  ["<system-reminder>Be brief.</system-reminder>", "<system-reminder>Be brief.</system-reminder>"]
])("a session that begins with %j is called %j", (words, heading) => assert.strictEqual(promptHeading(words), heading))
