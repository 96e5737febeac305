import { quotedPath } from "../text/WorkspacePath.ts"
import { has, isModern, lines, type PromptInputs } from "./PromptInputs.ts"

/** Workflows: with a plan first or at once, and with a task list. */

const approved = (path: string): string =>
  `The user approved the plan in ${quotedPath(path)}. Follow it, step by step. After a compression read it again before you go on. Where the facts force you away from it, say so and why.`

const searching = (inputs: PromptInputs): string =>
  has(inputs, "search_file_content") || has(inputs, "glob")
    ? "Search for names and texts, then read what the search points to, with what calls it and what tests it."
    : "Read what the task names, with what calls it and what tests it."

const fresh =
  "For something new: settle what it has to do, for whom, and with what. Take what the project uses already, else something common with few parts. Have it run early, in its smallest form, then let it grow. Leave no stubs that pretend to work."

const patience = lines(
  'How a good run looks, for "the login test fails since yesterday":',
  "",
  "1. Run that test alone and read its error, to the end.",
  "2. Search for its text and for the function it names; read those parts, and what changed there last.",
  "3. Say in a sentence what is wrong: `parseToken` trims the token, but its signature was made of the whole.",
  "4. Change that one place. Run the test again, then those of the folder, then the type checker.",
  "5. Answer in two sentences: the cause with its place, and what was run to check it."
)

/** Understand, plan, change, verify, report. */
export const primaryWorkflows = (inputs: PromptInputs): string => {
  const canRun = has(inputs, "run_shell_command")
  return lines(
    ...(inputs.planFile === undefined ? [] : [approved(inputs.planFile), ""]),
    `1. **Understand.** ${searching(inputs)} Stop looking when you know what to change and what depends on it. For a bug, see it fail first.`,
    `2. **Decide.** Say in a sentence or two what you are going to do. ${inputs.interactive ? "If it is much more than was asked for, or goes another way, let the user choose first." : "If it is much more than was asked for, do the part that was asked for."}${has(inputs, "enter_plan_mode") ? " Where much depends on the way that is taken, call `enter_plan_mode` first." : ""}`,
    "3. **Change.** One thing at a time, in the way of the code around it. With a behaviour change its tests and its documentation.",
    canRun
      ? "4. **Check.** Run what the project itself checks with (its manifest, its README or its CI files name the commands): the nearest test first, then types, linter and the rest that the change can reach. Read failures to the end. Never make a check pass by weakening it."
      : "4. **Check.** Read what you changed once more, with what depends on it.",
    "5. **Report.** What changed and where, how it was checked, what is left.",
    "",
    fresh,
    ...(isModern(inputs) || !canRun ? [] : ["", patience])
  )
}

/** Explore, ask, write the plan, have it approved. */
export const planningWorkflow = (inputs: PromptInputs): string => {
  const { interactive, planFile } = inputs
  const file = planFile === undefined ? undefined : quotedPath(planFile)
  return lines(
    `The user wants a plan before anything is changed. Until they approve one, only look: read, search, ask.${file === undefined ? " Change no file" : ` Change no file but ${file}`} and run no command: such calls are refused, and that is as it should be.`,
    "",
    "1. **Look.** Find the code the task is about, what depends on it, how it is tested, and what was tried before.",
    interactive
      ? `2. **Ask.** What only the user can decide, in few questions${has(inputs, "ask_user") ? " with `ask_user`" : ""}, each with the answer you would choose. What you can find out, find out.`
      : "2. **Decide.** Where the task leaves a choice, choose, and note in the plan why.",
    `3. **Write the plan${file === undefined ? "" : ` into ${file}`}.** The goal; what you found, with places; the steps in order, each with its files and with how one sees that it is done; what could go wrong; what is left out on purpose. Somebody who has read nothing else should be able to carry it out.`,
    interactive && has(inputs, "exit_plan_mode")
      ? "4. **Show it** with `exit_plan_mode`, and wait. An objection goes into the plan, and the plan is shown again. With the approval the work begins."
      : "4. **Show it** as your answer. The work begins when somebody has approved it, not before.",
    "",
    file === undefined
      ? "A question that needs no change is answered without a plan."
      : `That file outlives every compression: after one, read it before you go on. A question that needs no change is answered without a plan.`
  )
}

/** When and how to keep the task list. */
export const taskTracker = (): string =>
  lines(
    "Keep the steps of longer work with `write_todos`: three steps or more, or several wishes at once. Not for a question or a single change.",
    "",
    "- Name a step so that you would know what to do if you had forgotten all else: `add the retry to src/http/client.ts and test it`, not `fix client`.",
    "- One step is in_progress while you work on it. Mark it completed when you have seen that it is, and then at once, not all at the end.",
    "- New work becomes a step, dropped work is cancelled. The user watches this list, and it survives a compression: keep it true."
  )
