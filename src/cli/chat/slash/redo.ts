import type { SlashCommand } from "./SlashCommand.ts"
import { changeCompression } from "./undo.ts"

/** `/redo`: repeats the compression that `/undo` reversed. */
export const redo: SlashCommand = {
  name: "redo",
  usage: "",
  help: "Redo the compression that /undo reversed",
  run: (session) => changeCompression(session, "redo")
}
