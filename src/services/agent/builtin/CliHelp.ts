/** The built-in agent that answers questions about this program, with the manual that it reads. */

import { Effect, Schema } from "effect"
import { localDefaults } from "../../../domain/agent/AgentDefinition.ts"
import { strategies } from "../../../domain/compression/strategies/Strategies.ts"
import * as Tool from "../../tools/Tool.ts"
import type { KnownAgent } from "../AgentDefinitions.ts"

/** A page of the manual. */
interface Page {
  /** The subject of the page in a few words. */
  readonly about: string
  readonly text: string
}

/** The bundled manual by topic, from which `cli_help` answers. A test compares its commands and flags with those of the command line. */
export const manual: Readonly<Record<string, Page>> = {
  overview: {
    about: "what palimpsest is, its commands, exit statuses",
    text: `palimpsest is a command-line agent whose conversations may be of any length, and a set of tools for transcripts.

palimpsest               on a terminal: begins a chat
palimpsest chat          talk with a model in the terminal
palimpsest ask PROMPT    ask once and print the answer; what is piped in is put behind the prompt
palimpsest sessions      list, show, resume, rename, export, import, delete kept conversations
palimpsest agents        list, show, run agents
palimpsest memory        show, list, add, refresh what is remembered
palimpsest prompt        the system prompt with the tokens of each section
palimpsest trust [PATH]  trust a folder (--no, --forget, --list)
palimpsest config        list, get, set, unset, path, schema, doctor, import gemini
palimpsest compress FILE compress a conversation once
palimpsest inspect FILE  where the tokens of a conversation go
palimpsest recall FILE HANDLE  the exact bytes behind a handle
palimpsest replay FILE   what a strategy would have done with a recording in a window
palimpsest eval FILES    what a compression keeps of what was needed later

Every command has --help. --json prints one JSON document. The short name is pal.
Exit status: 0 done, 1 the operation failed, 2 bad usage or input, 130 interrupted.`
  },
  chat: {
    about: "talking in the terminal and in pipes, models, keys",
    text: `A key: set GEMINI_API_KEY (https://aistudio.google.com/apikey) or GOOGLE_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY. Ollama needs none. Another endpoint: GOOGLE_GEMINI_BASE_URL.
The model: --model NAME, else the session's own where its provider has a key, else PALIMPSEST_MODEL, else "model" in the settings, else one of a provider that has a key.

palimpsest chat                 begins a conversation; /help lists the commands of the chat
palimpsest chat --continue      goes on where you left off
palimpsest chat --resume NAME   goes on with a session: latest, its number, its title, or the beginning of its id
palimpsest chat --session NAME  keeps the conversation under this id
git diff | palimpsest ask "review this"
palimpsest chat --model replay:FILE   steps through a recording, without a key

The flags of chat and ask work without a command, too; palimpsest "a question" asks it.

What is typed while the agent works reaches it after the tools that run; Tab sends it after the answer instead. Esc interrupts, and keeps the steps that are done.
A question takes one key: y once, s in this session, a always in this folder, n no, with a reason. /approvals takes approvals back. Shift+Tab changes what runs without asking.
Ctrl+C cancels what is running, else clears the line. On an empty line, press it twice to leave.
ask keeps no conversation unless --session, --resume or --continue is given; --stream-json prints every event as a line.`
  },
  sessions: {
    about: "kept conversations: finding, exporting, deleting them",
    text: `palimpsest sessions list              the newest first; --limit N, --json
palimpsest sessions show NAME         what it is about
palimpsest sessions resume NAME       the same as chat --resume
palimpsest sessions rename NAME TITLE
palimpsest sessions export NAME       to a file, in any format (--to)
palimpsest sessions import FILE       takes a conversation over as a new session
palimpsest sessions delete NAME       for good, with all that could be recalled of it

Sessions lie in the folder sessions of PALIMPSEST_HOME (default: palimpsest in your data folder). Nothing is deleted by itself unless
sessionRetention in the settings says so.`
  },
  compression: {
    about: "how conversations are made to fit, and how to get back what left",
    text: `Before a request leaves it is counted. From half the window on (--threshold, compressionThreshold in the settings; 1 for only when it
must be) the conversation is compressed. All that left the window has a handle (h_…) and can be recalled.

palimpsest compress FILE --force --out small.jsonl
--strategy decides what stays (${strategies.map(({ name }) => name).join(", ")}); --summarizer extractive goes without a model, model uses one.
--plan says what would be done, --apply carries a plan out. --focus TEXT says what you want kept.
palimpsest recall FILE HANDLE  with --lines A-B, --grep REGEX, --max-tokens N
palimpsest inspect FILE --html page.html  shows where the tokens went
palimpsest replay FILE --window 16k --strategy palimpsest,pi  compares strategies on a recording`
  },
  formats: {
    about: "which transcripts are read and written",
    text: `Read and written: palimpsest (our log), contents (Gemini API), gemini (Gemini CLI), claude (Claude Code), codex (Codex CLI), pi (Pi).
The format is detected; --from says it. compress FILE --out OTHER --to FORMAT converts. A file is never changed unless --in-place asks
for it. --lenient skips lines that cannot be read. - is standard input.`
  },
  settings: {
    about: "settings.json and what can stand in it",
    text: `settings.json in PALIMPSEST_HOME, then .palimpsest/settings.json in the folder you work in if it is trusted, then .env, then the environment,
then flags; the later wins. JSON with comments; $VAR, \${VAR} and \${VAR:-default} are filled in.

palimpsest config list --all       every setting, its value and where that comes from
palimpsest config get KEY          such as memory.maxDirs
palimpsest config set KEY VALUE    in your home's file; --workspace in the folder's. unset KEY takes it out
palimpsest config schema           a JSON Schema for an editor
palimpsest config doctor           checks all places and says what to do
palimpsest config import gemini    takes over a ~/.gemini folder; --dry-run only reports

A variable for each plain setting: memory.maxDirs is PALIMPSEST_MEMORY_MAX_DIRS. For single models: {"models": {"NAME": {"compressionThreshold": 0.3}}}.
approve, allowed, askForBuildFiles, allowPrivateNetwork, passEnvironment, mcpServers, sessionRetention, telemetry, ide, includeDirectories,
loadMemoryFromIncludeDirectories and folderTrust count in PALIMPSEST_HOME only.
An invalid file is reported with the key and the expected value before anything runs.`
  },
  memory: {
    about: "GEMINI.md and its like, imports, trust, @ references",
    text: `GEMINI.md, AGENTS.md and PALIMPSEST.md are sent with every request: those of PALIMPSEST_HOME and ~/.gemini, of extensions, and of the folder, those
above it up to the project where they are trusted, and those below it. @path in such a file imports another one. memory.fileNames changes the names.

palimpsest memory show | list | refresh      in the chat: /memory
palimpsest memory add "fact" --scope project|global      in the chat: /memory add project: fact

Nothing is taken from a folder before it is trusted: settings, .env, memory, hooks, agents, skills. The chat asks once; palimpsest trust says it, --no refuses, --forget
takes it back, --list shows all.

In a message @path sends a file, folder or glob along, @"two words" one with spaces; images and PDFs too. Ignored files stay out.`
  },
  hooks: {
    about: "commands that run when something happens, plan mode, the editor, telemetry",
    text: `In settings.json: {"hooks": {"BeforeTool": [{"matcher": "write_file", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 5000}]}]}}
Events: SessionStart, SessionEnd, BeforeAgent, AfterAgent, BeforeTool, AfterTool, BeforeModel, AfterModel, BeforeToolSelection, PreCompress,
PostCompress, Notification. A command gets JSON on standard input and answers JSON on standard output; exit status 2 refuses, with the reason on stderr. hooksConfig
has enabled, disabled and timeout (milliseconds).

--approve plan or /approve plan: nothing is changed before a plan is approved.
An editor may write what is open into ide.json in PALIMPSEST_HOME.
{"telemetry": {"enabled": true}} writes telemetry.jsonl; endpoint sends it to an OTLP collector; prompts: true adds what was said.`
  },
  agents: {
    about: "agents: built-in ones, your own as files, running them",
    text: `palimpsest agents list              all agents and where each comes from; broken files are reported on stderr
palimpsest agents show NAME         an agent's definition as it is used
palimpsest agents run NAME PROMPT   runs one: what it does on stderr, its result on stdout

Built in: codebase_investigator (reads a code base and reports), generalist (any task, all tools), cli_help (this manual),
browser_agent (opens pages in a Chromium that is installed; only where it is asked for).

Your own: a Markdown file in .palimpsest/agents or .gemini/agents of the workspace or of your home folder.

---
name: reviewer
description: Reviews a change for mistakes
tools: ["read_file", "search_file_content"]
model: inherit
temperature: 0.2
max_turns: 20
timeout_mins: 5
---
You review changes. \${query} is the task.

name: lower-case letters, digits, hyphens, underscores. description: what it is good for. tools: names, or "*", "mcp_*",
"mcp_<server>_*"; absent: all. mcp_servers: servers of its own. model: a name, or inherit. temperature (default 1), top_p (0.95), max_turns (30),
timeout_mins (10), compression_threshold (as the settings), display_name. runner: process runs it in a process of its own. The text below is its system prompt; \${query} stands
for its task. Files whose name begins with _ are left out. A remote agent: kind: remote with agent_card_url or agent_card_json, and auth.
Of two agents with the same name your own counts before the workspace's, and that before a built-in one.`
  }
}

const topics = Object.keys(manual)
const list = topics.map((topic) => `${topic}: ${manual[topic]?.about ?? ""}`).join("\n")

/** Reads a page of the bundled manual. */
export const getInternalDocs = Tool.make({
  name: "get_internal_docs",
  description: "Reads the manual of palimpsest. Without a topic, lists the topics.",
  parameters: Schema.Struct({
    topic: Schema.optionalKey(Schema.String).annotate({ description: "One of the topics of the list" })
  }),
  result: Schema.String,
  kind: "read",
  title: ({ topic = "" }) => topic,
  run: ({ topic }) => {
    if (topic === undefined) return Effect.succeed({ value: list })
    const page = Object.hasOwn(manual, topic) ? manual[topic] : undefined
    return page === undefined
      ? Effect.fail(new Tool.ToolFailure({ message: `there is no topic ${topic}; there are: ${topics.join(", ")}` }))
      : Effect.succeed({ value: page.text })
  }
})

/** The agent's result: an answer and its sources. */
const Answer = Schema.Struct({
  answer: Schema.String.annotate({ description: "The answer, with the commands to type" }),
  sources: Schema.Array(Schema.String).annotate({ description: "The topics of the manual that the answer comes from" })
})

/** The agent that answers questions about this program from its manual. */
export const cliHelp: KnownAgent = {
  source: "built-in",
  file: undefined,
  own: { reads: true, open: Effect.succeed([getInternalDocs]) },
  definition: {
    ...localDefaults,
    kind: "local",
    name: "cli_help",
    displayName: "Help",
    description:
      "Answers questions about palimpsest itself: its commands and flags, settings, sessions, compression, agents. Use it whenever the user asks how to do something with this program.",
    prompt: `You answer questions about palimpsest, a command-line agent and a set of tools for long conversations. Your only source is its manual, which you read with get_internal_docs: first the list of topics, then the topics that may contain the answer.

Give the command or the setting to use, exactly as the manual writes it, with an example where it helps. If the manual does not answer the question, say so, and name what comes closest.`,
    query: `\${question}`,
    tools: [],
    temperature: 0.1,
    maxTurns: 10,
    timeoutMinutes: 3,
    inputs: {
      question: Schema.NonEmptyString.annotate({ description: "The question, as the user asked it" })
    },
    output: { name: "report", description: "The answer and its sources", schema: Answer }
  }
}
