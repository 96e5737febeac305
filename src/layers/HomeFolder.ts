import { Config, Effect, Option } from "effect"
import { homedir } from "node:os"
import path from "node:path"
import { env, platform } from "node:process"

const text = (name: string) => Config.option(Config.NonEmptyString(name))

const places = Config.all({ own: text("PALIMPSEST_HOME"), xdg: text("XDG_DATA_HOME"), appData: text("APPDATA") })

/**
 * Where what is kept from run to run lives: `PALIMPSEST_HOME`, else `palimpsest` in the platform's folder for the data of
 * users. Nothing is made here.
 */
export const homeFolder: Effect.Effect<string> = places.pipe(
  Effect.orElseSucceed(() => ({ own: Option.none(), xdg: Option.none(), appData: Option.none() })),
  Effect.map(({ appData, own, xdg }) => {
    const user =
      platform === "win32"
        ? Option.getOrElse(appData, () => path.join(homedir(), "AppData", "Roaming"))
        : platform === "darwin"
          ? path.join(homedir(), "Library", "Application Support")
          : Option.getOrElse(xdg, () => path.join(homedir(), ".local", "share"))
    return Option.getOrElse(own, () => path.join(user, "palimpsest"))
  })
)

const ownHome = env["GEMINI_CLI_HOME"]?.trim() ?? ""

/** The person's folder of Gemini CLI: `.gemini` in their home, or in what `GEMINI_CLI_HOME` names in its place (spec 15). */
export const geminiFolder = path.join(ownHome === "" ? homedir() : ownHome, ".gemini")
