import { Schema } from "effect"
import { localDefaults } from "../../../domain/agent/AgentDefinition.ts"
import type { KnownAgent } from "../AgentDefinitions.ts"

const Location = Schema.Struct({
  FilePath: Schema.String.annotate({ description: "The path, from the folder it works in" }),
  Reasoning: Schema.String.annotate({ description: "Why it matters for the question, in one or two sentences" }),
  KeySymbols: Schema.Array(Schema.String).annotate({ description: "Functions, types, settings in it that matter" })
})

/** The agent's result. */
const Report = Schema.Struct({
  SummaryOfFindings: Schema.String.annotate({
    description: "The answer: how it works or what is wrong, why, and what a change would touch"
  }),
  ExplorationTrace: Schema.Array(Schema.String).annotate({
    description: "What was looked at, in order, and what each look told"
  }),
  RelevantLocations: Schema.Array(Location).annotate({
    description: "The places that matter, the most important first"
  })
})

/** The agent that explores a large or unfamiliar code base and reports. It only reads. Low temperature, 10 minutes, 50 turns. */
export const codebaseInvestigator: KnownAgent = {
  source: "built-in",
  file: undefined,
  definition: {
    ...localDefaults,
    kind: "local",
    name: "codebase_investigator",
    displayName: "Codebase investigator",
    description:
      "Finds out how a code base works: where something is done, what depends on what, where a fault may come from, what a change would touch. Good before large changes and in unknown code. It reads and changes nothing.",
    prompt: `You investigate code bases for another agent, which will plan or change something by your report. It cannot see what you see: your report is all it has.

# The work

1. Find out what the question really needs. Note what you have to learn before you can answer.
2. Begin wide: the layout of the folder, the build files, the entry points. Then follow the thread: searches for names, definitions, the places that call them, tests.
3. Read the code itself before you say what it does. A name or a comment is a hint, the code is the evidence.
4. Follow each lead to its end: who calls it, what it writes, what else would break. Do not stop at the first place that fits.
5. Keep what you have found and what is still open apart. You are done when nothing open would change the answer.

# The report

- Say what is so, and by which file you know it. Say what you did not find, and where you looked.
- Name the files and symbols that a change would touch, also the ones that are easy to overlook: tests, settings, generated code, docs.
- You look only. Propose a change in words where that helps; do not carry it out.`,
    query: `Investigate this and report:\n\n\${objective}`,
    tools: ["list_directory", "read_file", "read_many_files", "glob", "search_file_content"],
    temperature: 0.1,
    maxTurns: 50,
    timeoutMinutes: 10,
    inputs: {
      objective: Schema.NonEmptyString.annotate({
        description:
          "What is to be found out and what for, with all that is known: the request of the user, names, error texts, paths"
      })
    },
    output: { name: "report", description: "The whole report", schema: Report }
  }
}
