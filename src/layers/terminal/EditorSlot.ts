import { type Component, Container, type Focusable } from "@earendil-works/pi-tui"
import type { Choice } from "../../services/terminal/ChatTerminal.ts"
import * as Picker from "./Picker.ts"
import type { Theme } from "./Theme.ts"

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
    this.put(Picker.make(title, choices, this.theme, close))
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
