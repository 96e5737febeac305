/** The built-in agent that explores a code base and reports on it. */

import { Schema } from "effect"
import { localDefaults } from "../../../domain/agent/AgentDefinition.ts"
import type { KnownAgent } from "../AgentDefinitions.ts"

const Location = Schema.Struct({
  FilePath: Schema.String.annotate({ description: "The path, relative to the working folder" }),
  Reasoning: Schema.String.annotate({ description: "Why the file matters for the question, in one or two sentences" }),
  KeySymbols: Schema.Array(Schema.String).annotate({
    description: "Relevant functions, types and settings in the file"
  })
})

/** The agent's result. */
const Report = Schema.Struct({
  SummaryOfFindings: Schema.String.annotate({
    description: "The answer: how it works or what is wrong, why, and what a change would affect"
  }),
  ExplorationTrace: Schema.Array(Schema.String).annotate({
    description: "What was examined, in order, and what each step showed"
  }),
  RelevantLocations: Schema.Array(Location).annotate({
    description: "The relevant locations, most important first"
  })
})

/** An agent that explores a large or unfamiliar code base and reports on it. It only reads. Low temperature, 10 minutes, 50 turns. */
export const codebaseInvestigator: KnownAgent = {
  source: "built-in",
  file: undefined,
  definition: {
    ...localDefaults,
    kind: "local",
    name: "codebase_investigator",
    displayName: "Codebase investigator",
    description:
      "Finds out how a code base works: where something is implemented, what depends on what, where a bug may come from, what a change would affect. Useful before large changes and in unfamiliar code. It only reads and changes nothing.",
    prompt: `You investigate a code base for another agent, which will plan or make a change based on your report. It cannot see what you see: your report is all it has.

# The work

1. Determine what the question really asks. Note what you must learn before you can answer.
2. Start broad: the folder layout, the build files, the entry points. Then narrow down: search for names, definitions, callers and tests.
3. Read the code itself before you say what it does. A name or a comment is a hint; the code is the evidence.
4. Follow each lead to its end: what calls it, what it writes, what else would break. Do not stop at the first match.
5. Track your findings and your open questions separately. You are done when no open question could change the answer.

# The report

- State the facts, and the file that supports each. State what you did not find, and where you looked.
- Name the files and symbols that a change would affect, including those that are easy to overlook: tests, settings, generated code, documentation.
- Only investigate. Describe a change where that helps; do not make it.`,
    query: `Investigate this and report:\n\n\${objective}`,
    tools: ["list_directory", "read_file", "read_many_files", "glob", "search_file_content"],
    temperature: 0.1,
    maxTurns: 50,
    timeoutMinutes: 10,
    inputs: {
      objective: Schema.NonEmptyString.annotate({
        description:
          "What to find out and why, with everything that is known: the user's request, names, error texts, paths"
      })
    },
    output: { name: "report", description: "The complete report", schema: Report }
  }
}
