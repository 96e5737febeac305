import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import path from "node:path"
import { sandboxOf } from "../../../src/domain/prompt/EnvironmentMessage.ts"
import {
  isModern,
  type Offer,
  type PromptInputs,
  PromptSize,
  type SectionKey,
  sectionKeys
} from "../../../src/domain/prompt/PromptInputs.ts"
import { agentRules, joined, memoryOf, render, sections, substituted } from "../../../src/domain/prompt/SystemPrompt.ts"
import { withDefaults } from "../../../src/domain/settings/Settings.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { ApprovalMode } from "../../../src/domain/tools/Approval.ts"
import { runsOf } from "../../support/runs.ts"

/** All of it, as it is sent. */
const systemPrompt = (inputs: PromptInputs): string => joined([...sections(inputs).map(render), memoryOf(inputs)])

const modern = "gemini-3-pro"
const legacy = "gemini-2.5-pro"

/** Names of tools that the texts speak of. */
const tools = [
  "read_file",
  "replace",
  "run_shell_command",
  "search_file_content",
  "glob",
  "web_fetch",
  "google_web_search",
  "write_todos",
  "recall",
  "ask_user",
  "activate_skill",
  "enter_plan_mode",
  "exit_plan_mode",
  "sessions_spawn"
]

const all: PromptInputs = {
  size: "full",
  model: legacy,
  interactive: true,
  mode: "all",
  agents: [{ name: "codebase_investigator", description: "Finds out how code works" }],
  skills: [{ name: "pdf", description: "Fills in forms" }],
  tools,
  hasHooks: true,
  isGit: true,
  sandbox: "none",
  planFile: "/plans/a.md",
  memory: "<loaded_context>\nUse tabs.\n</loaded_context>"
}

const keys = (change: Partial<PromptInputs>) => sections({ ...all, ...change }).map(({ key }) => key)
const without = (...left: ReadonlyArray<SectionKey>) => sectionKeys.filter((key) => !left.includes(key))

/** Everything that changes what is said. */
const Inputs = Arbitrary.map(
  Arbitrary.schema(
    Schema.Struct({
      size: PromptSize,
      model: Schema.Literals([modern, legacy]),
      interactive: Schema.Boolean,
      mode: ApprovalMode,
      agents: Schema.Boolean,
      skills: Schema.Boolean,
      // As bits: which of the tools there are.
      tools: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** tools.length - 1 })),
      hasHooks: Schema.Boolean,
      isGit: Schema.Boolean,
      sandbox: Schema.Literals(["seatbelt", "generic", "none"]),
      planned: Schema.Boolean,
      remembers: Schema.Boolean
    })
  ),
  ({ agents, planned, remembers, skills, tools: bits, ...rest }): PromptInputs => ({
    ...rest,
    agents: agents ? all.agents : [],
    skills: skills ? all.skills : [],
    tools: tools.filter((_, at) => (bits & (2 ** at)) !== 0),
    planFile: planned ? all.planFile : undefined,
    memory: remembers ? all.memory : undefined
  })
)
const runs = { arbitrary: { runs: runsOf(1_000) } }

describe("the sections", () => {
  const rules: ReadonlyArray<
    readonly [rule: string, change: Partial<PromptInputs>, expected: ReadonlyArray<SectionKey>]
  > = [
    ["stand in one order", {}, without("planningWorkflow")],
    [
      "while a plan is made its rules take the place of the usual ones",
      { mode: "plan" },
      without("primaryWorkflows", "interactiveYoloMode")
    ],
    ["agents only where there are some", { agents: [] }, without("planningWorkflow", "agentContexts")],
    ["skills only where there are some", { skills: [] }, without("planningWorkflow", "agentSkills")],
    [
      "nor where none can be activated",
      { tools: tools.filter((name) => name !== "activate_skill") },
      without("planningWorkflow", "agentSkills")
    ],
    ["hooks only where there are some", { hasHooks: false }, without("planningWorkflow", "hookContext")],
    [
      "steps only where a list of them can be kept",
      { tools: tools.filter((name) => name !== "write_todos") },
      without("planningWorkflow", "taskTracker")
    ],
    ["git only in a repository", { isGit: false }, without("planningWorkflow", "git")],
    [
      "all is approved: only where somebody watches",
      { interactive: false },
      without("planningWorkflow", "interactiveYoloMode")
    ],
    ["and only where all is", { mode: "edits" }, without("planningWorkflow", "interactiveYoloMode")],
    [
      "Gemini 3 needs no last reminder, and no examples",
      { model: modern },
      without("planningWorkflow", "answerExamples", "finalReminder")
    ],
    [
      "without tools there is no work to be told of",
      { tools: [] },
      [
        "preamble",
        "coreMandates",
        "honesty",
        "sources",
        "compressedWindow",
        "memoryRules",
        "agentContexts",
        "hookContext",
        "operationalGuidelines",
        "answers",
        "answerExamples",
        "interactiveYoloMode",
        "finalReminder"
      ]
    ],
    [
      "minimal: who it is, the rules, tools and the machine",
      { size: "minimal" },
      [
        "preamble",
        "coreMandates",
        "honesty",
        "sources",
        "care",
        "secrets",
        "permission",
        "compressedWindow",
        "hookContext",
        "operationalGuidelines",
        "answers",
        "sandbox",
        "git"
      ]
    ],
    ["none: who it is", { size: "none" }, ["preamble"]]
  ]
  it.each(rules)("%s", (_, change, expected) => assert.deepStrictEqual(keys(change), expected))

  /** Sections with which others are disabled. */
  const parts: Readonly<Partial<Record<SectionKey, ReadonlyArray<SectionKey>>>> = {
    coreMandates: ["honesty", "sources", "care", "secrets", "permission", "compressedWindow", "memoryRules"],
    operationalGuidelines: ["answers", "answerExamples"]
  }
  it.each(sectionKeys)("%s can be disabled by itself", (key) => {
    const mode = key === "planningWorkflow" ? "plan" : "all"
    const gone = [key, ...(parts[key] ?? [])]
    assert.deepStrictEqual(
      keys({ mode, toggles: { [key]: false } }),
      keys({ mode }).filter((one) => !gone.includes(one))
    )
    assert.deepStrictEqual(keys({ mode, toggles: { [key]: true } }), keys({ mode }))
  })

  it("a switch cannot enable a section whose guard excludes it", () =>
    assert.notInclude(keys({ isGit: false, toggles: { git: true } }), "git"))
})

describe("the three modes", () => {
  const sizeOf = (size: PromptSize) => estimateText(systemPrompt({ ...all, size }))

  it("openclaw: full has more than 15 sections, minimal fewer, none the identity alone (OpenClaw 2026.9)", () => {
    assert.isAbove(keys({ size: "full" }).length, 15)
    assert.isAbove(keys({ size: "full", mode: "none" }).length, 15)
    // In a folder without anything of its own.
    assert.isAbove(keys({ size: "full", mode: "none", isGit: false, skills: [], hasHooks: false }).length, 15)
    assert.isBelow(keys({ size: "minimal" }).length, keys({ size: "full" }).length)
    assert.deepStrictEqual(keys({ size: "none" }), ["preamble"])
  })

  it("pi: the prompt has some 300 words, with memory behind them (Pi 0.73; ours: in our words)", () => {
    const brief = systemPrompt({ ...all, size: "brief", memory: "" })
    const words = brief.split(/\s+/).length
    assert.isTrue(words > 250 && words < 350, `${words} words`)
    assert.isTrue(systemPrompt({ ...all, size: "brief", memory: "Use tabs." }).endsWith("Use tabs."))
    assert.strictEqual(withDefaults({ strategy: "pi" }).prompt.size, "brief")
    assert.strictEqual(withDefaults({ strategy: "pi", prompt: { size: "full" } }).prompt.size, "full")
  })

  it("openclaw: full is larger than minimal, minimal larger than none (OpenClaw 2026.9)", () => {
    assert.isAbove(sizeOf("full"), sizeOf("minimal"))
    assert.isAbove(sizeOf("minimal"), 10 * sizeOf("none"))
  })

  it.prop(
    "in this order for all inputs",
    [Inputs],
    ([inputs]) => {
      const [full = 0, minimal = 0, none = 0] = (["full", "minimal", "none"] as const).map(
        (size) => systemPrompt({ ...inputs, size }).length
      )
      assert.isTrue(full > minimal && minimal > none)
    },
    runs
  )

  it.prop(
    "openclaw: the stable part comes before the part that changes during a conversation (OpenClaw 2026.9; ours: date and folder are in the environment message)",
    [Inputs, Arbitrary.schema(ApprovalMode)],
    ([inputs, mode]) => {
      const changed = { ...inputs, mode, planFile: "/plans/other.md", memory: "Something else." }
      const stable = (one: PromptInputs) =>
        joined(
          sections(one)
            .filter(({ key }) => sectionKeys.indexOf(key) < sectionKeys.indexOf("planningWorkflow"))
            .map(render)
        )
      assert.strictEqual(stable(changed), stable(inputs))
      assert.isTrue(systemPrompt(changed).startsWith(stable(inputs)))
      assert.isAbove(
        stable({ ...inputs, size: "full" }).length,
        systemPrompt({ ...inputs, size: "full", memory: "" }).length / 2
      )
    },
    runs
  )
})

describe("the rules of started agents", () => {
  it("openclaw: agents get the minimal prompt without identity, memory and offers (OpenClaw 2026.9)", () => {
    const { agents: _agents, interactive: _interactive, size: _size, skills: _skills, ...inputs } = all
    const rules = agentRules(inputs)
    assert.notInclude(rules, "You are Palimpsest")
    assert.notInclude(rules, "Use tabs")
    assert.notInclude(rules, "codebase_investigator")
    assert.isTrue(systemPrompt({ ...all, size: "minimal", interactive: false }).endsWith(rules))
  })
})

describe("models", () => {
  const names: ReadonlyArray<readonly [model: string, expected: boolean]> = [
    ["gemini-3-pro", true],
    ["gemini-3-flash-preview", true],
    ["gemini-3.1-pro", true],
    ["models/gemini-3-pro", true],
    ["gemini-12-pro", true],
    ["gemini-2.5-pro", false],
    ["gemini-2.5-flash", false],
    ["gemini-1.5-pro", false],
    ["gemma-3-27b", false],
    ["some-other-gemini-3", false],
    ["", false]
  ]
  it.each(names)("%s: short prompt is %s", (model, expected) => assert.strictEqual(isModern({ model }), expected))

  it("older models get examples", () => {
    const [old, young] = [legacy, modern].map((model) => systemPrompt({ ...all, model }))
    assert.include(old, "Example answers")
    assert.include(old, "Example of a good run")
    assert.notInclude(young, "Example answers")
    assert.notInclude(young, "Example of a good run")
  })
})

const variables: ReadonlyArray<readonly [value: string | undefined, expected: PromptInputs["sandbox"]]> = [
  [undefined, "none"],
  ["", "none"],
  ["  ", "none"],
  ["sandbox-exec", "seatbelt"],
  [" sandbox-exec ", "seatbelt"],
  ["docker", "generic"],
  ["0", "generic"]
]
it.each(variables)("the sandbox SANDBOX=%s: %s", (value, expected) => assert.strictEqual(sandboxOf(value), expected))

describe("the whole prompt", () => {
  it("collapses three or more line breaks to two, also in memory", () =>
    assert.isTrue(systemPrompt({ ...all, memory: "\n\na\n\n\n\nb\n\n\nc\n\n" }).endsWith("\n\na\n\nb\n\nc")))

  it("without tools, skills and agents is one sentence", () =>
    assert.match(systemPrompt({ ...all, size: "none" }), /^You are Palimpsest, [^.\n]+\.$/))

  it("takes less than 3,000 tokens in full, less than 2,000 as minimal", () => {
    const largest = systemPrompt({ ...all, memory: "" })
    assert.isBelow(estimateText(largest), 3_000)
    assert.isAbove(estimateText(largest), 2_000)
    assert.isBelow(estimateText(systemPrompt({ ...all, size: "minimal" })), 2_000)
  })

  it("names the approved plan while it is carried out, and the plan's file while planning", () => {
    assert.include(systemPrompt(all), "approved the plan in /plans/a.md.")
    assert.include(systemPrompt({ ...all, mode: "plan" }), "Change no file except /plans/a.md ")
    assert.notInclude(systemPrompt({ ...all, planFile: undefined }), "approved the plan in")
    assert.include(
      systemPrompt({ ...all, planFile: "/plans/a\nIgnore this.md" }),
      String.raw`"/plans/a\nIgnore this.md"`
    )
  })

  it("does not suggest asking the user when no terminal is attached", () => {
    for (const mode of ApprovalMode.literals) {
      const text = systemPrompt({
        ...all,
        mode,
        interactive: false,
        tools: tools.filter((name) => name !== "ask_user")
      })
      assert.notMatch(text, /\bask(?:s)? the user\b|tell the user|let the user|so do not ask/)
    }
  })

  it.prop(
    "is deterministic and contains no date",
    [Inputs],
    ([inputs]) => {
      const text = systemPrompt(inputs)
      assert.strictEqual(systemPrompt(structuredClone(inputs)), text)
      assert.notMatch(text, /\b20\d\d\b|\n{3,}|undefined|^\s|\s$/)
    },
    runs
  )

  it.prop(
    "mentions no unavailable tool",
    [Inputs],
    ([inputs]) => {
      const text = systemPrompt({ ...inputs, memory: "" })
      for (const name of tools) {
        if (!inputs.tools.includes(name)) assert.notInclude(text, `\`${name}\``)
      }
    },
    runs
  )
})

describe("the lists of tools, skills and agents", () => {
  const listed = (agents: ReadonlyArray<Offer>) =>
    (sections({ ...all, agents }).find(({ key }) => key === "agentContexts")?.text ?? "")
      .split("\n\n")
      .at(-1)
      ?.split("\n")

  it("use one line each, whatever a description contains", () =>
    assert.deepStrictEqual(listed([{ name: "a\n# b", description: "One.\n\n# Rules\u0007\u2028Do this." }]), [
      "- a # b: One. # Rules Do this."
    ]))

  it("count entries beyond the first hundred", () => {
    const lines = listed(Array.from({ length: 103 }, (_, at) => ({ name: `a${at}`, description: "x" }))) ?? []
    assert.strictEqual(lines.length, 101)
    assert.strictEqual(lines.at(-1), "- … and 3 more")
  })
})

describe("placeholders in the user's own text", () => {
  const agents = render(sections(all).find(({ key }) => key === "agentContexts") ?? { title: "", text: "missing" })
  const cases: ReadonlyArray<readonly [rule: string, text: string, expected: string, change?: Partial<PromptInputs>]> =
    [
      ["${AvailableTools} is a list", "a\n${AvailableTools}\nb", "a\n- one\n- two\nb", { tools: ["one", "two"] }],
      ["${SubAgents} is the section", "${SubAgents}", agents],
      ["even where it is switched off", "${SubAgents}", agents, { toggles: { agentContexts: false } }],
      ["and nothing where there are none", "<${SubAgents}${AgentSkills}>", "<>", { agents: [], skills: [] }],
      ["a tool's name", "Call ${read_file_ToolName}.", "Call read_file."],
      ["a tool that there is not stays as it was written", "${fly_ToolName}", "${fly_ToolName}"],
      ["so does all else", "${HOME} $1 $& ${ AgentSkills }", "${HOME} $1 $& ${ AgentSkills }"],
      [
        "what is put in is not looked at again",
        "${AvailableTools}",
        "- ${SubAgents}\n- $&",
        { tools: ["${SubAgents}", "$&"] }
      ]
    ]
  for (const [rule, text, expected, change] of cases) {
    it(rule, () => assert.strictEqual(substituted(text, { ...all, ...change }), expected))
  }

  it("${AgentSkills} is the section", () => assert.include(substituted("${AgentSkills}", all), "- pdf: Fills in forms"))
})

/**
 * The texts are our own: no twelve words in a row stand in the texts that this system is described by, nor in those that
 * Gemini CLI sends. The fixture holds hashes only: each text was lower-cased and taken apart into its runs of letters and
 * digits; of every twelve in a row, joined by blanks, it has the first five bytes of the SHA-256.
 */
describe("the original wording", () => {
  const words = 12
  const digits = 10
  const file = path.join(import.meta.dirname, "../../fixtures/prompt-shingles.bin")
  const known = new Set(readFileSync(file, "hex").match(new RegExp(`.{${digits}}`, "g")))
  const taken = (...texts: ReadonlyArray<string>): ReadonlyArray<string> => {
    const runs = texts.flatMap((text) => {
      const all = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
      return all.slice(words - 1).map((_, at) => all.slice(at, at + words).join(" "))
    })
    return [...new Set(runs)].filter((run) =>
      known.has(createHash("sha256").update(run).digest("hex").slice(0, digits))
    )
  }

  it("the fixture recognizes a sentence of the compared texts", () => {
    assert.isAbove(known.size, 15_000)
    assert.lengthOf(
      taken("When the conversation history grows too large, you will be invoked to distill the entire"),
      4
    )
  })

  it("shares no run of twelve words with them", () => {
    const texts = [modern, legacy].flatMap((model) =>
      [true, false].flatMap((interactive) =>
        ApprovalMode.literals.flatMap((mode) =>
          (["seatbelt", "generic", "none"] as const).flatMap((sandbox) =>
            [tools, []].flatMap((some) =>
              [all.planFile, undefined].map((planFile) =>
                systemPrompt({ ...all, model, interactive, mode, sandbox, tools: some, planFile })
              )
            )
          )
        )
      )
    )
    assert.deepStrictEqual(taken(...new Set(texts)), [])
  })
})
