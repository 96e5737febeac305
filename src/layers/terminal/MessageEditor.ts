/** The editor in which the user writes messages: keys, pastes, blocks of several lines. */

import { Editor, matchesKey, type TUI, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui"
import { pasted } from "./SafeText.ts"
import type { Theme } from "./Theme.ts"
import { initial, step, type VimState } from "./VimKeys.ts"

/** Placeholder for a border that is not drawn. */
const noBorder = "\u0000"

const pasteStart = "\u001b[200~"
const pasteEnd = "\u001b[201~"

/** Placeholder for a tab, which the editor would replace with blanks. */
const tabSign = "␉"

/** A text with more lines or characters comes into the editor as a paste, which is shown folded. */
const foldedLines = 10
const foldedChars = 1_000

const isLong = (text: string): boolean => text.length > foldedChars || text.split("\n").length > foldedLines

/** Whether a text begins a block between two lines `"""` that has not ended. */
const isOpenBlock = (text: string): boolean => {
  const lines = text.split("\n")
  return lines[0]?.trimEnd() === '"""' && (lines.length < 2 || lines.at(-1)?.trimEnd() !== '"""')
}
/** The message that a text means: a block without its quotes. */
const messageOf = (text: string): string => {
  const lines = text.split("\n")
  return lines[0]?.trimEnd() === '"""' && lines.length > 1 ? lines.slice(1, -1).join("\n") : text
}

/** The editor of messages: the status line above it, a prompt before it, and the menu of completions below. */
export class MessageEditor extends Editor {
  /** The text before the first line. */
  prompt = "> "
  /** The line above the editor; undefined draws none. */
  status: ((columns: number) => string) | undefined
  /** Shown while the editor is empty. */
  placeholder = ""
  /** Takes a message. It may be empty: that answers some questions. */
  onMessage: (text: string, waits: boolean) => void = () => {}
  /** Returns the replacement of a pasted text, such as the reference to an image. */
  onPaste: (text: string) => string = (text) => text
  /** Vim's keys; undefined: the usual ones. */
  vim: VimState | undefined
  /** The text for which the menu was made. */
  menuText = ""
  /** The text at which Tab was pressed before its menu was there. */
  private tabText: string | undefined

  private readonly look: Theme
  /** Whether the message that is completed waits for a prompt. */
  private waits = false
  /** Long messages of the history, by the labels that stand for them in the editor. */
  private readonly folded = new Map<string, string>()

  constructor(tui: TUI, theme: Theme) {
    super(tui, theme.editor, { paddingX: 2, autocompleteMaxVisible: 8 })
    this.look = theme
  }

  protected override renderTopBorder(width: number, hiddenLines: number): string {
    return hiddenLines > 0 ? super.renderTopBorder(width, hiddenLines) : noBorder
  }

  protected override renderBottomBorder(width: number, hiddenLines: number): string {
    return hiddenLines > 0 ? super.renderBottomBorder(width, hiddenLines) : noBorder
  }

  override render(width: number): Array<string> {
    const basePrompt = visibleWidth(this.prompt) * 2 < width ? this.prompt : "> "
    const prompt = this.vim?.mode === "normal" ? basePrompt.replace(/>? $/, ": ") : basePrompt
    const indent = visibleWidth(prompt)
    if (this.getPaddingX() !== indent) this.setPaddingX(indent)
    const rows = super.render(width)
    const [top = noBorder, ...rest] = rows
    const first = rest[0] ?? ""
    const isEmpty = this.getText() === ""
    const hint = isEmpty && this.placeholder !== "" ? this.look.dim(this.placeholder) : ""
    const lines = [`${this.look.accent(prompt)}${first.slice(indent).trimEnd()}${hint}`, ...rest.slice(1)]
    const status = this.status?.(width)
    return [...(status === undefined || status === "" ? [] : [status]), top, ...lines]
      .filter((row) => row !== noBorder)
      .map((row) => truncateToWidth(row.trimEnd(), width, ""))
  }

  /** Replaces the text. A long one is folded, as if it was pasted. */
  fill(text: string) {
    const kept = text.replaceAll("\t", tabSign)
    this.setText("")
    if (isLong(text)) super.handleInput(pasteStart + kept + pasteEnd)
    else if (text !== "") this.setText(kept)
  }

  /** The text with its tabs and with what is folded. */
  wholeText(): string {
    const text = this.getExpandedText().replaceAll(tabSign, "\t")
    return text.replace(/\[message #\d+ \+\d+ lines\]/g, (label) => this.folded.get(label) ?? label)
  }

  /** Adds a message to those that Up recalls. A long one stays folded there, too. */
  override addToHistory(text: string) {
    const lines = text.split("\n").length
    if (!isLong(text)) return super.addToHistory(text)
    const label = `[message #${this.folded.size + 1} +${lines} lines]`
    this.folded.set(label, text)
    super.addToHistory(label)
  }

  /** Whether Escape means something here: with Vim's keys it leaves the insert mode. */
  takesEscape(): boolean {
    return this.vim?.mode === "insert" && this.getText() !== ""
  }

  /** Whether Tab completes something here: a menu is open, or the cursor is at a command or a file. */
  takesTab(): boolean {
    const { col, line } = this.getCursor()
    const before = (this.getLines()[line] ?? "").slice(0, col)
    return this.isShowingAutocomplete() || /^[/!]|(?:^|\s)@\S*$/.test(before)
  }

  /** Completes the message as Enter does, but for a prompt, whatever work goes on. */
  sendLater() {
    this.waits = true
    this.handleInput("\r")
    this.waits = false
  }

  /** Takes a key of Vim's normal mode. Returns whether it was one. */
  private handleVim(data: string): boolean {
    if (this.vim === undefined) return false
    if (matchesKey(data, "escape") && !this.isShowingAutocomplete()) {
      if (this.vim.mode === "insert" && this.getCursor().col > 0) super.handleInput("\u001b[D")
      this.vim = { mode: "normal", pending: "" }
      return true
    }
    if (this.vim.mode === "insert" || [...data].length !== 1 || data < " " || data === "\u007f") return false
    const { keys, state } = step(this.vim, data)
    this.vim = state
    for (const key of keys) {
      if (key === "\n") this.insertTextAtCursor("\n")
      else super.handleInput(key)
    }
    return true
  }

  /** Takes the marked entry of a menu that has just opened, if Tab was pressed before. */
  menuOpened() {
    if (this.tabText !== this.getText() || !this.isShowingAutocomplete()) return
    this.tabText = undefined
    super.handleInput("\t")
    this.tui.requestRender()
  }

  override handleInput(data: string) {
    const isEarlyTab = matchesKey(data, "tab") && !this.isShowingAutocomplete() && this.menuText !== this.getText()
    this.tabText = isEarlyTab ? this.getText() : undefined
    if (data.startsWith(pasteStart)) {
      const pastedText = pasted(data.slice(pasteStart.length, -pasteEnd.length))
      const replaced = this.onPaste(pastedText)
      if (replaced !== pastedText) return this.insertTextAtCursor(replaced)
      const shown = pastedText.replaceAll("\t", tabSign)
      // The end of the last line is no line of its own.
      const text = isLong(shown) ? shown.replace(/\n$/, "") : shown
      super.handleInput(`${pasteStart}${text}${pasteEnd}`)
      return
    }
    if (this.handleVim(data)) return
    if (data === "\n" || matchesKey(data, "alt+enter")) return this.insertTextAtCursor("\n")
    const isEnter = matchesKey(data, "enter")
    if (this.isShowingAutocomplete() && (isEnter || matchesKey(data, "tab"))) {
      const before = this.getText()
      // A menu for an earlier text is about to be replaced, and Enter ends the argument of a command.
      const isAbout = this.menuText === before && !(isEnter && /^\/\S*\s/.test(before))
      super.handleInput(isAbout ? "\t" : "\u001b")
      // After the slash alone, Enter takes the first command of the menu; only another Enter runs it.
      const isComplete =
        before.trimEnd() !== "/" && (this.getText().trimEnd() === before.trimEnd() || /^\/\S+$/.test(this.getText()))
      if (!isEnter || !isComplete) return
    }
    if (!isEnter) {
      const before = this.getText()
      super.handleInput(data)
      // A recalled message is continued at its end.
      if (matchesKey(data, "up") && this.getText() !== before) {
        for (const _ of this.getLines()) super.handleInput("\u001b[6~")
        super.handleInput("\u0005")
      }
      return
    }
    const { col, line } = this.getCursor()
    const before = (this.getLines()[line] ?? "").slice(0, col)
    const whole = this.wholeText()
    if (isOpenBlock(whole)) return this.insertTextAtCursor("\n")
    // A single backslash continues the message. Two are literal.
    if (/(?:^|[^\\])\\$/.test(before) && !whole.startsWith('"""')) {
      super.handleInput("\u007f")
      return this.insertTextAtCursor("\n")
    }
    const message = messageOf(whole).trimEnd()
    this.setText("")
    if (this.vim !== undefined) this.vim = initial
    this.onMessage(message, this.waits)
  }
}
