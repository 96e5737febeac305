/** The slash command `/theme`: changes the colours of the chat, and saves the choice in the settings. */

import { Effect, Option } from "effect"
import { type TerminalSettings, withDefaults } from "../../../domain/settings/Settings.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import { Settings } from "../../../services/settings/Settings.ts"
import { say, type SlashCommand } from "./ChatSession.ts"

type Theme = TerminalSettings["theme"]

const themes: Readonly<Record<Theme, string>> = {
  auto: "by the background of the terminal",
  dark: "for a dark background",
  light: "for a light background",
  contrast: "nothing dimmed, strong colours"
}

const isTheme = (name: string): name is Theme => Object.hasOwn(themes, name)
const names = Object.keys(themes).filter(isTheme)

/** The command `/theme [name]`. */
export const theme: SlashCommand = {
  name: "theme",
  usage: "[name]",
  help: "Choose the colours: auto, dark, light or contrast",
  run: Effect.fnUntraced(function* (session, argument) {
    const settings = yield* Settings
    const { terminal } = withDefaults((yield* settings.read).settings)
    const choices = names.map((value) => ({
      value,
      label: value,
      about: themes[value],
      isCurrent: value === terminal.theme
    }))
    const chosen =
      argument === ""
        ? yield* Effect.option(session.terminal.choose("Theme", choices))
        : Option.some(Option.some(argument.toLowerCase()))
    // The user left the list, or no list can be shown here.
    if (Option.isSome(chosen) && Option.isNone(chosen.value)) return
    const name = Option.isSome(chosen) ? Option.getOrElse(chosen.value, () => "") : ""
    if (!isTheme(name)) {
      const unknown = name === "" ? "" : `There is no theme ${printableLine(name)}. `
      return yield* say(
        session,
        `${unknown}Name one of these: ${names.map((each) => `${each} (${themes[each]})`).join(", ")}.`
      )
    }
    const file = yield* settings.set("home", ["terminal", "theme"], name)
    yield* session.terminal.configure({ ...terminal, theme: name })
    yield* say(session, `The theme is now ${name} (${printableLine(file)}).`)
  })
}
