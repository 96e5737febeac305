/** The slash command `/rewind`: goes back to before a message of the user, with the files as they were then. */

import { Clock, Effect, Option, Predicate, Ref } from "effect"
import { isCall, text as textPart, user } from "../../../domain/content/Content.ts"
import { entries, sequenceOf } from "../../../domain/conversation/Conversation.ts"
import { changedSince, type RewindTarget } from "../../../domain/session/ChangedFiles.ts"
import type { SessionTree, TreeNode } from "../../../domain/session/SessionTree.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import * as PersistentList from "../../../domain/text/PersistentList.ts"
import { runtimeMark } from "../../../domain/text/RuntimeMark.ts"
import { shellTool } from "../../../domain/tools/Approval.ts"
import { promptHeading } from "../../../domain/transcripts/PromptTitle.ts"
import type { RewindFile, RewoundFile } from "../../../services/runtime/FileRewind.ts"
import { truncate } from "../../output/Columns.ts"
import { plural } from "../../output/Output.ts"
import { ago } from "../../output/TimeText.ts"
import { type ChatSession, say, type SlashCommand } from "./ChatSession.ts"
import { typedId } from "./tree.ts"

/** What a rewind restores. */
type Scope = "both" | "conversation" | "files"
const scopes: ReadonlyArray<Scope> = ["both", "conversation", "files"]

const usage = "[message]"
const maxNamedFiles = 8
const maxCommandColumns = 60

const fileList = (files: ReadonlyArray<{ readonly shown: string }>): string => {
  const names = files.slice(0, maxNamedFiles).map(({ shown }) => printableLine(shown))
  return `${names.join(", ")}${files.length > maxNamedFiles ? ` and ${files.length - maxNamedFiles} more` : ""}`
}

/** What a rewind did to files, one line for each outcome. */
const outcomeLines = (files: ReadonlyArray<RewoundFile>): ReadonlyArray<string> => {
  const of = (outcome: RewoundFile["outcome"]) => files.filter((file) => file.outcome === outcome)
  const line = (done: ReadonlyArray<RewoundFile>, verb: string) =>
    done.length === 0 ? [] : [`${verb} ${fileList(done)}.`]
  return [
    ...line(of("restored"), "Restored"),
    ...line(of("removed"), "Removed"),
    ...line(of("left"), "Left as they are:"),
    ...of("failed").map(
      ({ problem, shown }) => `Not restored: ${printableLine(shown)}: ${printableLine(problem ?? "")}.`
    )
  ]
}

/** The user's messages on the current path, newest first. */
const userMessages = ({ nodes }: SessionTree): ReadonlyArray<TreeNode> =>
  [...nodes.values()].filter(({ isOnPath, kind }) => isOnPath && kind === "user").reverse()

/** Lets the user choose an earlier message. */
const chooseMessage = Effect.fnUntraced(function* ({ chat, terminal }: ChatSession, tree: SessionTree) {
  const now = yield* Clock.currentTimeMillis
  const changes = PersistentList.toArray((yield* chat.whole).changes)
  return yield* terminal.choose(
    "Go back to before this message",
    userMessages(tree).map(({ at, id, text }) => {
      const { length } = changedSince(changes, { _tag: "Before", sequence: sequenceOf(id) })
      const files = length === 0 ? [] : [`${plural(length, "file")} changed since`]
      return {
        value: id,
        label: promptHeading(text),
        about: [id, ...(at === undefined ? [] : [ago(at, now)]), ...files].join(" · ")
      }
    })
  )
})

/** Lets the user choose what to restore; without changed files that is the conversation. */
const chooseScope = Effect.fnUntraced(function* ({ terminal }: ChatSession, files: ReadonlyArray<RewindFile>) {
  if (files.length === 0) return Option.some<Scope>("conversation")
  const about = fileList(files)
  return yield* terminal.choose<Scope>("What goes back?", [
    { value: "both", label: "Conversation and files", about },
    { value: "conversation", label: "Conversation only", about: "files stay as they are" },
    { value: "files", label: "Files only", about }
  ])
})

/** Asks what to do with files that others changed. None: the user cancelled. */
const askOverwrite = Effect.fnUntraced(function* ({ terminal }: ChatSession, files: ReadonlyArray<RewindFile>) {
  const changed = files.filter(({ state }) => state === "changed")
  if (changed.length === 0) return Option.some(false)
  return yield* terminal
    .choose<boolean>(`Changed since by you or another program: ${fileList(changed)}`, [
      { value: false, label: "Leave them as they are", about: "restore only the others" },
      { value: true, label: "Restore them too", about: "/rewind back restores what they hold now" }
    ])
    .pipe(Effect.orElseSucceed(() => Option.some(false)))
})

/** Puts files back. Returns what happened; undefined when the user cancelled. */
const putBack = Effect.fnUntraced(function* (session: ChatSession, files: ReadonlyArray<RewindFile>) {
  const overwrites = yield* askOverwrite(session, files)
  if (Option.isNone(overwrites)) return undefined
  return yield* session.agent.rewind.restore(files, overwrites.value)
})

/** Returns the note that tells the model about restored files, because it remembers its own edits. */
const noteForModel = (files: ReadonlyArray<RewoundFile>) =>
  `${runtimeMark}\nThe user put these files back to an earlier version: ${fileList(files)}. Read them again before you change them.`

const tellModel = Effect.fnUntraced(function* ({ chat }: ChatSession, done: ReadonlyArray<RewoundFile>) {
  const changed = done.filter(({ outcome }) => outcome === "restored" || outcome === "removed")
  if (changed.length === 0) return
  yield* chat.append([{ content: user(textPart(noteForModel(changed))), author: "program" }])
})

const report = (session: ChatSession, lines: ReadonlyArray<string>) =>
  Effect.forEach(lines, (line) => say(session, line), { discard: true })

/** Lists the files that shell commands and other programs wrote since a message: a rewind does not restore them. */
const tellUnrecorded = Effect.fnUntraced(function* (
  session: ChatSession,
  target: RewindTarget,
  at: number | undefined
) {
  const files = at === undefined ? [] : yield* session.agent.rewind.unrecorded(target, at)
  if (files.length === 0) return
  const shown = fileList(files.map((file) => ({ shown: file })))
  yield* say(session, `Not restored, because shell commands or other programs wrote it: ${shown}.`)
})

/** Says which shell commands ran since a message: files that they removed or moved are not restored. */
const tellCommands = Effect.fnUntraced(function* (session: ChatSession, sequence: number) {
  const commands = entries((yield* session.chat.whole).conversation)
    .filter(({ id }) => sequenceOf(id) >= sequence)
    .flatMap(({ content }) => content.parts)
    .flatMap((part) => (isCall(part) && part.functionCall.name === shellTool ? [part.functionCall.args] : []))
    .map((args) => (Predicate.hasProperty(args, "command") ? String(args.command) : ""))
    .map((command) => ({ shown: truncate(printableLine(command), maxCommandColumns) }))
  if (commands.length === 0) return
  yield* say(
    session,
    `Shell commands ran since: ${fileList(commands)}. Files that they removed or moved are not restored.`
  )
})

const goBack = Effect.fnUntraced(function* (
  session: ChatSession,
  { at, id: to }: Pick<TreeNode, "at" | "id">,
  typedScope: Scope | undefined
) {
  const { agent, chat, compressedAt, prefill } = session
  const target = { _tag: "Before", sequence: sequenceOf(to) } satisfies RewindTarget
  const files = typedScope === "conversation" ? [] : yield* agent.rewind.survey(target)
  const picked = yield* typedScope === undefined
    ? Effect.option(chooseScope(session, files))
    : Effect.succeed(Option.some(Option.some(typedScope)))
  if (Option.isNone(picked)) {
    return yield* say(
      session,
      `Choose what to restore: /rewind ${to} both, /rewind ${to} conversation or /rewind ${to} files`
    )
  }
  const scope = picked.value
  if (Option.isNone(scope)) return
  const done = scope.value === "conversation" ? [] : yield* putBack(session, files)
  if (done === undefined) return yield* say(session, "Cancelled. Nothing was changed.")
  yield* report(session, outcomeLines(done))
  if (typedScope !== "conversation" && (scope.value !== "conversation" || files.length === 0)) {
    yield* tellUnrecorded(session, target, at)
    yield* tellCommands(session, target.sequence)
  }
  const undo = done.some(({ outcome }) => outcome === "restored" || outcome === "removed")
    ? " /rewind back undoes that for the files."
    : ""
  if (scope.value === "files") {
    yield* tellModel(session, done)
    const text = files.length === 0 ? "No file has changed since." : `The conversation is unchanged.${undo}`
    return yield* say(session, text)
  }
  const { tip } = yield* chat.tree
  const outcome = yield* chat.branch({ to })
  yield* Ref.set(compressedAt, -1)
  if (outcome._tag !== "Cancelled" && outcome.text !== undefined) yield* Ref.set(prefill, outcome.text)
  const tree = tip === null ? "" : ` /tree ${tip} takes the conversation forward again.`
  yield* say(session, `Went back to before ${to}; its text is in the input line.${tree}${undo}`)
})

/** Undoes the last rewind of files. */
const undoRewind = Effect.fnUntraced(function* (session: ChatSession) {
  const files = yield* session.agent.rewind.survey({ _tag: "LastRewind" })
  if (files.length === 0) return yield* say(session, "There is no rewind of files to undo.")
  const done = yield* putBack(session, files)
  if (done === undefined) return yield* say(session, "Cancelled. Nothing was changed.")
  yield* report(session, outcomeLines(done))
  yield* tellModel(session, done)
})

/** The command `/rewind [message [scope]]`. */
export const rewind: SlashCommand = {
  name: "rewind",
  usage,
  help: "Go back to one of your messages, with the files as they were then (/rewind back undoes that)",
  run: Effect.fnUntraced(function* (session, argument) {
    if (argument === "back") return yield* undoRewind(session)
    const tree = yield* session.chat.tree
    const messages = userMessages(tree)
    if (messages.length === 0) return yield* say(session, "There are no messages yet.")
    const [typed = "", scopeWord, ...rest] = argument.split(/\s+/)
    if (typed === "") {
      const chosen = yield* Effect.option(chooseMessage(session, tree))
      if (Option.isNone(chosen)) {
        for (const { id, text } of [...messages].reverse()) yield* say(session, `${id}  ${text}`)
        return yield* say(
          session,
          `Name a message and what to restore, for example: /rewind ${messages[0]?.id ?? "e1"} both`
        )
      }
      const node = Option.isNone(chosen.value) ? undefined : tree.nodes.get(chosen.value.value)
      return node === undefined ? undefined : yield* goBack(session, node, undefined)
    }
    const to = messages.find(({ id }) => id === typedId(typed))
    const scope = scopes.find((each) => each === scopeWord)
    if (to === undefined)
      return yield* say(session, `${printableLine(typed)} is not one of your messages; /rewind lists them.`)
    if (rest.length > 0 || (scopeWord !== undefined && scope === undefined)) {
      return yield* say(session, `Choose both, conversation or files, for example: /rewind ${to.id} both`)
    }
    yield* goBack(session, to, scope)
  })
}
