/** Where the folders of this program and of the user are on this machine. */

import { Config, Effect, Option } from "effect"
import { homedir } from "node:os"
import path from "node:path"
import { env, platform } from "node:process"

const text = (name: string) => Config.option(Config.NonEmptyString(name))

const places = Config.all({ own: text("PALIMPSEST_HOME"), xdg: text("XDG_DATA_HOME"), appData: text("APPDATA") })

/** The folder for data kept between runs: `PALIMPSEST_HOME`, else `palimpsest` in the platform's user data folder. Creates nothing. */
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

/** The folder of a home in which a server keeps what its clients set for sessions, each in a file. */
export const recordFolder = (home: string): string => path.join(home, "served")
/** The file of a session in it. */
export const recordFile = (home: string, session: string): string => path.join(recordFolder(home), `${session}.json`)

/** The home folder of the user. */
export const userHome: string = homedir()

const ownHome = env["GEMINI_CLI_HOME"]?.trim() ?? ""

/** The user's Gemini CLI folder: `.gemini` in the home folder, or in `GEMINI_CLI_HOME`. */
export const geminiFolder = path.join(ownHome === "" ? homedir() : ownHome, ".gemini")
