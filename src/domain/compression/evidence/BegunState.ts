/** The state of the work in the snapshot with which a log begins: no entry of the log has what it stands for. */

import { type Handle, mentions } from "../../content/Handle.ts"
import { EntryId } from "../../conversation/Conversation.ts"
import { unprotect } from "../../text/UntrustedText.ts"
import { refusers } from "../../transcripts/voice/ResultVoice.ts"
import type { Snapshot } from "../Snapshot.ts"
import { addCommand, type Attempts } from "./Attempts.ts"
import { type FileHistory, fileHeadings } from "./FileHistory.ts"
import type { TodoHistory } from "./TodoHistory.ts"

/** Matches a file in a list. */
const listedFile = /^ *(.*?)(?: (h_[a-z2-7]+))?(?: \((created|deleted)\))?$/
/** Matches an item of the work. */
const item = /^- \[([^\]\n]+)\] (?:issue (\S+): )?(?:#(\w+) )?.+$/
/** Matches what failed or was refused, and what the result said. */
const failure =
  /^- (?:unresolved failure of|refused by (the user|a rule):) ([^\n]*) \((e\d+)(?: (h_[a-z2-7]+))?\)(?::\n([^]*))?/

/** What the log goes on from. */
interface State {
  readonly files: FileHistory
  readonly attempts: Attempts
  readonly todos: TodoHistory
}

/** Takes over the files, failures and items of a snapshot. What the log says of them follows. */
export const beginWith = ({ attempts, files, todos }: State, entry: EntryId, snapshot: Snapshot): void => {
  const handleOf = (text = ""): Handle | undefined => mentions(text)[0]
  for (const { text } of [...snapshot.file_system_state, ...snapshot.artifact_trail]) {
    const [heading, ...lines] = text.split("\n")
    const kept = (["read", "changed"] as const).find((key) => heading === `- ${fileHeadings[key]}`)
    for (const line of kept === undefined ? [] : lines.reverse()) {
      const [, path = "", handle, change] = listedFile.exec(line) ?? []
      const changed = change === "created" || change === "deleted" ? change : "modified"
      const state = kept === "read" ? "read" : changed
      files.files.set(unprotect(path), { state, changes: 0, entry, handle: handleOf(handle), shown: 0 })
    }
  }
  if (snapshot.recent_actions.some(({ text }) => text.startsWith("- commit "))) {
    attempts.commits = { ...attempts.commits, present: [{ hash: "", subject: "", entry }] }
    files.committed = entry
  }
  const list = snapshot.task_state.flatMap(({ text }) => {
    const [whole, status = "", issue, id] = item.exec(text) ?? []
    if (whole === undefined) return []
    const todo = { status: unprotect(status), text: unprotect(whole.slice(status.length + 5)) }
    if (issue !== undefined) todos.issues.set(issue, todo)
    if (id !== undefined) todos.items.set(id, todo)
    return issue === undefined ? [todo] : []
  })
  if (list.length > 0) todos.list = { entry, todos: list }
  for (const { text } of [...snapshot.task_state].reverse()) {
    const [, refuser, subject, at, handle, said = ""] = failure.exec(text) ?? []
    if (subject === undefined || at === undefined) continue
    addCommand(attempts, {
      // No run of the log: a result beside it would say more than the snapshot does.
      kind: "call",
      subject: unprotect(subject),
      entry: EntryId.make(at),
      handle: handleOf(handle),
      failure: { text: unprotect(said.replace(/^ {4}/gm, "")), isQuoted: true },
      refusedBy: refuser === undefined ? undefined : refuser === refusers.user ? "user" : "rule"
    })
  }
}
