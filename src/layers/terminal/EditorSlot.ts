/** Shows the message editor, or in its place a list to search and to choose from. */

import {
  type Component,
  Container,
  type Focusable,
  fuzzyFilter,
  Input,
  matchesKey,
  SelectList
} from "@earendil-works/pi-tui"
import type { Choice } from "../../services/terminal/ChatTerminal.ts"
import type { Theme } from "./Theme.ts"

/** Number of items that are shown at once. */
const maxShown = 10
/** Maximum columns of a label, to leave room for its description. */
const maxLabelColumns = 48

const hint = "type to search · Enter selects · Esc closes"
const shortHint = "Enter selects · Esc closes"

/** A list to search and to choose from. `done` gets the choice, or undefined when the user leaves the list. */
const make = <A>(
  title: string,
  choices: ReadonlyArray<Choice<A>>,
  theme: Theme,
  done: (choice: Choice<A> | undefined) => void
): Component & Focusable => {
  const search = new Input()
  const items = choices.map(({ about, label }, index) => ({
    value: String(index),
    label,
    ...(about === undefined ? {} : { description: about })
  }))
  const listOf = (query: string) =>
    new SelectList(
      query === "" ? items : fuzzyFilter(items, query, ({ description = "", label }) => `${label} ${description}`),
      maxShown,
      theme.list,
      { minPrimaryColumnWidth: 12, maxPrimaryColumnWidth: maxLabelColumns }
    )
  let list = listOf("")
  list.setSelectedIndex(choices.findIndex(({ isCurrent }) => isCurrent === true))
  return {
    get focused() {
      return search.focused
    },
    set focused(isFocused: boolean) {
      search.focused = isFocused
    },
    invalidate: () => list.invalidate(),
    render: (width) => [
      theme.bold(title),
      ...search.render(width),
      ...(list.getSelectedItem() === null ? [theme.dim("  nothing matches")] : list.render(width)),
      theme.dim(hint.length > width ? shortHint : hint)
    ],
    handleInput: (data) => {
      if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c")) done(undefined)
      else if (matchesKey(data, "enter")) {
        const selected = list.getSelectedItem()
        if (selected !== null) done(choices[Number(selected.value)])
      } else if (matchesKey(data, "up") || matchesKey(data, "down")) list.handleInput(data)
      else {
        const before = search.getValue()
        search.handleInput(data)
        if (search.getValue() !== before) list = listOf(search.getValue())
      }
    }
  }
}

/** The place of the editor, in which a list to choose from can be shown. */
export class EditorSlot extends Container {
  private readonly editor: Component & Focusable
  private readonly theme: Theme
  private readonly focus: (component: Component) => void
  private closeList: (() => void) | undefined

  constructor(editor: Component & Focusable, theme: Theme, focus: (component: Component) => void) {
    super()
    this.editor = editor
    this.theme = theme
    this.focus = focus
    this.put(editor)
  }

  /** Whether a list is shown. */
  get isList(): boolean {
    return this.closeList !== undefined
  }

  /** Shows a list. `done` gets the choice, or undefined when the user leaves the list. */
  pick<A>(title: string, choices: ReadonlyArray<Choice<A>>, done: (choice: Choice<A> | undefined) => void) {
    const close = (choice: Choice<A> | undefined) => {
      this.closeList = undefined
      this.put(this.editor)
      done(choice)
    }
    this.closeList = () => close(undefined)
    this.put(make(title, choices, this.theme, close))
  }

  /** Leaves the list, if one is shown. */
  close() {
    this.closeList?.()
  }

  private put(component: Component) {
    this.clear()
    this.addChild(component)
    this.focus(component)
  }
}
